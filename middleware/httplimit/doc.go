// Package httplimit puts an engine in front of any http.Handler.
//
//	limit, err := httplimit.New(engine, httplimit.Options{})
//	http.ListenAndServe(addr, limit.Wrap(mux))
//
// Wrap is a func(http.Handler) http.Handler, which is what chi and gorilla take;
// frameworks with handlers of their own call Admit. The ResponseWriter is passed on
// as it is, so whatever it can do (flush, hijack, push) the handler can do.
//
// An admitted request carries headers about its tightest limit, a refused one is
// answered in full: see [WriteHeaders] and [Denial]. A request that a rule shapes is
// held until its turn, and gives its turn up when the client leaves.
//
// The client's address is that of the connection. Proxies that stand in front must
// be named in Options.TrustedProxies, or all requests seem to come from them.
//
// What looks like a mistake in the set-up is told once, with a code and a remedy;
// docs/middleware.md explains the codes.
package httplimit
