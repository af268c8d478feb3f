// Package simulate plays one piece of traffic against every algorithm, and
// shows what each admits, refuses and holds.
//
// It is pure and deterministic: limits and traffic go in, a [Report] comes out,
// and the same input gives the same output to the last byte. Nothing here reads
// a clock; time is what the traffic says.
//
//	limit, _ := weir.ParseLimit("100/1m")
//	traffic, _ := simulate.ParseTraffic("boundary", limit, 1)
//	lanes, _ := simulate.AllLanes(limit)
//	simulate.Run(limit, lanes, traffic, 60).WriteText(os.Stdout, simulate.Look{Width: 80})
//
// # Traffic
//
// Traffic is written as terms with commas between, all of one client:
//
//	50@10s          50 requests at once, 10 s after the start
//	50@10s..20s     50 requests spread evenly over these 10 s
//	3/1s@0s..1m     3 a second for a minute, evenly spaced
//	boundary        a pattern, scaled to the limit; see Patterns
//
// The start is aligned to every window, as it is in a scenario. Traffic with times
// of its own, of several clients, is a log; see [ParseLog].
package simulate
