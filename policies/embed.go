// Package policies embeds the shipped policies: one folder a policy, with its Rego and its Rego test beside it.
//
// It knows files only. What they mean is the business of internal/policy, which also tests them.
package policies

import "embed"

// FS holds <name>/<name>.rego and <name>/<name>_test.rego of every shipped policy.
//
//go:embed */*.rego
var FS embed.FS
