// Package grpclimit puts an engine in front of a gRPC server.
//
//	limit, err := grpclimit.New(engine, grpclimit.Options{})
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(limit.Unary()),
//		grpc.ChainStreamInterceptor(limit.Stream()),
//	)
//
// To the rules, a call is a POST of its full method, as in /shop.v1.Orders/Create, and
// its metadata are headers. An admitted call carries metadata about its tightest limit;
// a refused one ends with a status that says which limit it was and when to come back:
// see [Denial]. A call that a rule shapes is held until its turn, and gives its turn up
// when the client leaves.
//
// A stream is judged when it begins, and with Options.PerMessage at each message, too.
//
// The client's address is that of the connection. Proxies that stand in front must be
// named in Options.TrustedProxies, or all calls seem to come from them.
//
// What looks like a mistake in the set-up is told once, with a code and a remedy;
// docs/middleware.md explains the codes.
package grpclimit
