package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// problem is an answer that says what went wrong, as an error.
type problem struct {
	body       Problem
	retryAfter string
}

func newProblem(status int, code, detail string) *problem {
	return &problem{body: Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: int32(status), Code: code, Detail: detail,
	}}
}

func refusal(code, format string, args ...any) *problem {
	return newProblem(http.StatusUnprocessableEntity, code, fmt.Sprintf(format, args...))
}

func (p *problem) Error() string { return p.body.Code + ": " + p.body.Detail }

func writeProblem(w http.ResponseWriter, p *problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	if p.retryAfter != "" {
		w.Header().Set("Retry-After", p.retryAfter)
	}
	w.WriteHeader(int(p.body.Status))
	// The client may be gone; its own timeout tells it.
	_ = json.NewEncoder(w).Encode(p.body)
}
