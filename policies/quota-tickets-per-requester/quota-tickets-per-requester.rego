# METADATA
# title: Tickets per requester
# description: >-
#   Holds the tickets that one user has created, and that are still there, to a maximum. Whoever edits a ticket later, it
#   counts for the one who created it. Tickets whose creator isn't known count together, as for one user.
# custom:
#   parameters:
#     type: object
#     required: [max]
#     properties:
#       max:
#         title: Maximum
#         description: The most tickets that one user may have.
#         type: integer
#         minimum: 0
#         maximum: 9007199254740992
#       scope:
#         title: Scope
#         description: Cluster (default) counts all tickets of a user together, Namespace those of each namespace apart.
#         type: string
#         enum: [Cluster, Namespace]
#         default: Cluster
#       warnAt:
#         title: Warn at
#         description: The number of tickets from which more are admitted with a warning; 0 for never.
#         type: integer
#         minimum: 0
#         maximum: 9007199254740992
#         default: 0
package flights.quota_tickets_per_requester

quota contains {
	"key": requester,
	"scope": input.parameters.scope,
	"amount": 1,
	"limit": input.parameters.max,
	"warn_at": input.parameters.warnAt,
}

requester := "(unknown)" if input.requester == ""

# A key has 253 bytes at most, and a name may have more. 63 characters are never too many.
else := input.requester if count(input.requester) <= 63

else := concat("", ["sha256:", crypto.sha256(input.requester)])
