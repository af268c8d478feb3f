// Package gateway is a reverse proxy with the limiter in front.
//
//	g, err := gateway.New(gateway.Options{Limit: limit, Routes: routes})
//	go g.Run(ctx)
//	http.ListenAndServe(addr, g)
//
// A request is judged first; what is refused never reaches an upstream. Then the route
// with the longest host and the longest path is found, and of its upstreams the one
// with the least to do. Path and query travel as they came, and bodies stream in both
// directions: nothing is kept, so nothing is too big.
//
// # What is sent twice
//
// Nothing that an upstream may have seen. A request goes to another upstream only if no
// connection could be made; once a byte of it is under way it is answered 502 or 504
// instead, be it a GET. (net/http alone would send a GET again when a connection that
// was kept alive ends without an answer.)
//
// # Whom to believe
//
// Nobody but the peers in Options.TrustedProxies. From everybody else, headers that say
// who the client is, or what it asked for, are removed before the gateway writes its
// own.
package gateway
