package webhooks

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/policy"
)

// The bounds of an answer. The API server cuts warnings at 256 characters once they have 4096 in all.
const (
	maxReasonText  = 1 << 10
	maxReasons     = 100
	maxWarningText = 256
	maxWarnings    = 15
)

// retryAfterSeconds is when a client is to ask again: the shortest time that can be said.
const retryAfterSeconds = 1

// The results of an admission, as logs and metrics name them.
const (
	resultAllowed   = "allowed"
	resultDenied    = "denied"
	resultUndecided = "undecided"
	resultRetry     = "retry"
)

// reason is one reason why an object is refused.
type reason struct {
	// source is what speaks: a field ("spec.from") or a policy's name.
	source string
	// field is the path in the object; empty for a policy, which speaks of the whole.
	field string
	code  metav1.CauseType
	text  string
}

// outcome is an answer and what is known of how it came about.
type outcome struct {
	response admission.Response
	result   string
	// fields are the paths that were refused, without their values.
	fields    []string
	evaluated []policy.PolicyResult
	// rights are the verbs that the API server was asked about.
	rights []rightAsked
	// charge is what became of the ticket's claims.
	charge charge
	// err is why nothing could be decided, fit for a log; nil otherwise.
	err error
}

func allow(warnings []string) outcome {
	response := admission.Allowed("")
	response.Warnings = capWarnings(warnings)
	return outcome{response: response, result: resultAllowed}
}

// forbid refuses with HTTP 403: the object has a shape that could be stored, and something doesn't want it.
func forbid(req admission.Request, reasons []reason, warnings []string) outcome {
	return refuse(req, http.StatusForbidden, metav1.StatusReasonForbidden, reasons, warnings)
}

// invalid refuses with HTTP 422: the object makes no sense.
func invalid(req admission.Request, reasons []reason) outcome {
	return refuse(req, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, reasons, nil)
}

// undecided refuses because the question could not be answered. Trying again may help.
func undecided(req admission.Request, err error) outcome {
	message := fmt.Sprintf("could not decide: %s; nothing was stored, retry", oneLine(err.Error(), maxReasonText))
	return outcome{
		response: answer(req, http.StatusInternalServerError, metav1.StatusReasonInternalError, message, nil),
		result:   resultUndecided,
		err:      err,
	}
}

// again refuses for the moment: what is asked for may fit, and a repeat will tell. It is HTTP 429 with Retry-After, so that
// kubectl and other clients repeat by themselves.
func again(req admission.Request, err error) outcome {
	message := oneLine(err.Error(), maxReasonText) + "; nothing was stored, retry"
	response := answer(req, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message, nil)
	response.Result.Details.RetryAfterSeconds = retryAfterSeconds
	return outcome{response: response, result: resultRetry}
}

// late refuses for the moment, as again does, because policies had no time to answer and nothing else refuses.
func late(req admission.Request, reasons []reason, warnings []string) outcome {
	out := refuse(req, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, reasons, warnings)
	out.response.Result.Message += "; nothing was stored, retry"
	out.response.Result.Details.RetryAfterSeconds = retryAfterSeconds
	out.result = resultRetry
	return out
}

// refuse puts all reasons, in the order given, into the message and the causes.
func refuse(req admission.Request, code int32, why metav1.StatusReason, reasons []reason, warnings []string) outcome {
	lines := make([]string, 0, len(reasons))
	causes := make([]metav1.StatusCause, 0, len(reasons))
	for i, r := range reasons {
		if i == maxReasons {
			lines = append(lines, fmt.Sprintf("and %d more reasons", len(reasons)-maxReasons))
			break
		}
		text, field := oneLine(r.text, maxReasonText), oneLine(r.field, maxWarningText) // parameters have names of any form
		lines = append(lines, oneLine(r.source, maxWarningText)+": "+text)
		causes = append(causes, metav1.StatusCause{Type: r.code, Message: text, Field: field})
		if r.field == "" { // a policy
			causes[i].Message = lines[i]
		}
	}
	message := strings.Join(lines, "\n")
	if len(reasons) > 1 {
		message = fmt.Sprintf("%d reasons:\n%s", len(reasons), message)
	}
	response := answer(req, code, why, message, causes)
	response.Warnings = capWarnings(warnings)
	return outcome{response: response, result: resultDenied, fields: refusedFields(reasons)}
}

func refusedFields(reasons []reason) []string {
	var fields []string
	for _, r := range reasons {
		if r.field != "" && len(fields) < maxReasons && !slices.Contains(fields, r.field) {
			fields = append(fields, r.field)
		}
	}
	return fields
}

func answer(req admission.Request, code int32, why metav1.StatusReason, message string, causes []metav1.StatusCause) admission.Response {
	name := req.Name
	if name == "" {
		name = "(generated)"
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: false,
		Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: why, Message: message,
			Details: &metav1.StatusDetails{
				Name: name, Group: flightsv1.GroupVersion.Group, Kind: req.Kind.Kind, Causes: causes,
			},
		},
	}}
}

// capWarnings bounds warnings and makes each fit for an HTTP header.
func capWarnings(warnings []string) []string {
	var capped []string
	for i, w := range warnings {
		if i == maxWarnings {
			return append(capped, fmt.Sprintf("and %d more warnings", len(warnings)-maxWarnings))
		}
		capped = append(capped, oneLine(w, maxWarningText))
	}
	return capped
}

// oneLine makes a text one line of printable characters and at most limit bytes.
func oneLine(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}
	const mark = " ..."
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
