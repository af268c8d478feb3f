// Package httpapi is the HTTP API: protocol to engine and back, nothing else.
//
//	handler, err := httpapi.New(httpapi.Options{Engine: engine, Rules: repository})
//	http.ListenAndServe("127.0.0.1:8080", handler)
//
// Whoever can reach it may ask POST /v1/check and /v1/authz. Everything else below /v1
// is management, or for applications that count and queue: it needs a token as soon as
// there is a list of them, and a browser that was lured to it gets nowhere. docs/api.md is the reference; openapi.yaml, which
// the handler serves, is the same for programs, and a test holds it against the code.
//
// Every error is a [Problem]. A refusal by a limit is none: /v1/check answers it with
// 200, and /v1/authz as package httplimit would.
package httpapi
