package llm

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// headerNames are where the vendors' clients look for a limit, how much is left of it, and when
// it is reset; of requests, and of tokens.
var headerNames = map[rule.ModelAPI][2][3]string{
	rule.OpenAI: {
		{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
	},
	rule.Anthropic: {
		{"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
		{"Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
	},
}

// WriteHeaders adds the headers in which the vendor's clients look for a limit: of tokens, or of
// requests. Gemini has none.
func WriteHeaders(h http.Header, api rule.ModelAPI, tokens bool, d *weir.Decision) {
	both, found := headerNames[api]
	if !found {
		return
	}
	names := &both[0]
	if tokens {
		names = &both[1]
	}
	// The three are parts of one text.
	var buf [96]byte
	text := strconv.AppendInt(buf[:0], d.Limit, 10)
	limit := len(text)
	text = strconv.AppendInt(text, d.Remaining, 10)
	remaining := len(text)
	if api == rule.OpenAI {
		text = append(text, roundUp(d.ResetAfter, time.Millisecond).String()...)
	} else {
		text = d.ResetAt.Time().Add(time.Second-1).Truncate(time.Second).AppendFormat(text, time.RFC3339)
	}
	all := string(text)
	values := []string{all[:limit], all[limit:remaining], all[remaining:]}
	for i, name := range names {
		h[name] = values[i : i+1 : i+1]
	}
}

func roundUp(d, unit time.Duration) time.Duration {
	return max(0, d+unit-1).Truncate(unit)
}

// Problem is an error of an answer to a client of a vendor.
type Problem struct {
	Status   int
	Message  string
	Wait     time.Duration // for status 429; 0 if waiting does not help
	Requests bool          // a limit of requests denies, not one of tokens or money
}

// JSON is the error as the clients of the API expect it.
func (p *Problem) JSON(api rule.ModelAPI) []byte {
	text := func(v any) []byte {
		b, _ := json.Marshal(v) // maps of strings and numbers never fail
		return append(b, '\n')
	}
	name := p.names()
	type object = map[string]any
	switch api {
	case rule.Anthropic:
		return text(object{"type": "error", "error": object{"type": name.anthropic, "message": p.Message}})
	case rule.Gemini:
		e := object{"code": p.Status, "message": p.Message, "status": name.gemini}
		if p.Wait > 0 {
			e["details"] = []object{{
				"@type":      "type.googleapis.com/google.rpc.RetryInfo",
				"retryDelay": strconv.FormatFloat(roundUp(p.Wait, time.Millisecond).Seconds(), 'f', -1, 64) + "s",
			}}
		}
		return text(object{"error": e})
	}
	if api == rule.Bedrock {
		return text(object{"message": p.Message})
	}
	return text(object{"error": object{"message": p.Message, "type": name.openai, "param": nil, "code": name.code}})
}

// ErrorType is what clients of Amazon tell errors by, in the header X-Amzn-Errortype; "" for other APIs.
func (p *Problem) ErrorType(api rule.ModelAPI) string {
	if api != rule.Bedrock {
		return ""
	}
	switch p.Status {
	case http.StatusTooManyRequests:
		return "ThrottlingException"
	case http.StatusUnauthorized, http.StatusForbidden:
		return "AccessDeniedException"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailableException"
	}
	return "ValidationException"
}

// names are what the vendors call an error.
type names struct{ openai, code, anthropic, gemini string }

func (p *Problem) names() names {
	switch p.Status {
	case http.StatusTooManyRequests:
		if p.Requests {
			return names{"requests", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"}
		}
		return names{"tokens", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"}
	case http.StatusUnauthorized:
		return names{"invalid_request_error", "invalid_api_key", "authentication_error", "UNAUTHENTICATED"}
	case http.StatusForbidden:
		return names{"invalid_request_error", "permission_denied", "permission_error", "PERMISSION_DENIED"}
	case http.StatusRequestEntityTooLarge:
		return names{"invalid_request_error", "request_too_large", "request_too_large", "INVALID_ARGUMENT"}
	case http.StatusServiceUnavailable:
		return names{"server_error", "service_unavailable", "overloaded_error", "UNAVAILABLE"}
	}
	return names{"invalid_request_error", "invalid_request", "invalid_request_error", "INVALID_ARGUMENT"}
}
