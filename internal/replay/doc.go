// Package replay plays access logs against rules, and tells what would have
// happened: who would have been refused, how often, by which rule, and which limits
// would have refused how much.
//
//	log, err := replay.Open("access.log")
//	report, err := replay.Run(ctx, replay.Options{Table: table}, log)
//	report.WriteText(os.Stdout, 80)
//
// Requests are judged by the engine that judges live ones, on a store in memory,
// at the times that the logs have. Several logs are merged by time. Memory has a
// bound, however long the logs are and whatever clients have got into them.
package replay
