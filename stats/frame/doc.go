// Package frame is what happened in a stretch of time, in a form that can be added up:
// frames of two instances, or of sixty seconds, merge into one that says the same as
// if it had seen everything itself.
//
// Counts add up exactly. Histograms have the same slots everywhere, so that a
// percentile of merged frames is that of all requests together, never an average of
// percentiles. Rankings of keys carry the error of their counts along.
//
// A frame has bounds on everything that it names, and is written in a few bytes a rule.
package frame
