// Package alert says when something is wrong: too many requests are refused, traffic
// has fallen away, decisions have become slow, the store is gone.
//
//	w, err := alert.New(alert.Options{Source: recorder, Notifiers: []alert.Notifier{webhook}})
//	go w.Run(ctx)
//	w.List().Active()
//
// An [Evaluator] is pure: seconds in, alerts out, and the same seconds always give the
// same alerts. So every instance of weir that shares an archive comes to the same
// result, and one of them sends it.
//
// An alert fires when its condition has held for [Check.Hold] without a break, and is
// resolved when it has not held for [Check.Cooldown] without a break. In between it stays
// what it is, so that a figure which dances around its threshold makes one alert.
package alert
