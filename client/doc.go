// Package client asks a weir service whether a request may pass.
//
//	c, err := client.New(client.Options{Address: "127.0.0.1:8081"})
//	verdict, err := c.Check(ctx, &client.Request{User: "alice", Path: "/api/items"})
//	if err == nil && !verdict.Allowed {
//		// 429, and verdict.RetryAfter
//	}
//
// A service that is away is no error, and costs no time: the answer is then as
// Options.OnFailure says, and marked as Degraded. After three failures in a row nobody
// waits for the service any more; it is tried in the background, and asked again as soon
// as it answers.
//
// No call is sent twice, since both could be charged. One that was sent and came back
// with no answer may have been charged nevertheless.
package client
