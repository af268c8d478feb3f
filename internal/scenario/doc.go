// Package scenario is a small language for what a limiter must answer, and a
// runner for any store. A scenario reads like a conversation:
//
//	limit sliding_window 100/60s
//	at 0s    take alice 80 -> allow remaining 20
//	at 75s   peek alice    -> remaining 40
//
// # Limits
//
//	limit [NAME:] LIMIT
//
// LIMIT is what weir.ParseLimit reads. A NAME is needed when there are several;
// a key is then written NAME=KEY.
//
// # Steps
//
//	at TIME take   KEY [COST] [and KEY [COST]]... [within D] [times N [every D]] [-> ANSWER]
//	at TIME peek   KEY [COST] ...                                                [-> ANSWER]
//	at TIME refund KEY [COST] [and KEY [COST]]... [of TIME]
//	at TIME reset  KEY
//	count KEY from TIME to TIME -> N
//
// TIME is a duration since the scenario's start, or a time of day such as
// 10:30:15. The start is aligned to every window. Time may go back. A KEY with
// spaces or odd bytes is quoted as in Go. Ops joined by "and" are one request.
// "within" is the longest acceptable delay. "times" repeats the request, "every"
// moves the clock between. "count" adds up the units that left in [from, to),
// delays included. "refund" gives back what was taken at the time after "of", or the
// newest units.
//
// # Answers
//
//	allow | deny | remaining N | limit N | retry D|never | reset D | delay D | allowed N
//
// in any number and order. A request with several ops is answered as a whole,
// "allow" or "deny"; parts after ";" speak of one limit:
//
//	-> deny; ip deny retry 5s; user allow remaining 3
//
// With "times", allow and deny speak of every request, "allowed N" of how many
// were, and the rest of the last one. "#" starts a comment.
package scenario
