// Package rules measures what it costs to find the rules that apply to a request,
// with few rules and with many.
//
// Sets have the shapes that people give them, and every request meets three rules:
// one that is its own and two that are everybody's. Requests come in random order
// and ask for all rules alike, which is worse than any real traffic: with ten
// thousand rules, what a match takes longer is waiting for memory. Sets of one shape
// take turns, in another order each time; a figure is the median of the rounds,
// without what the loop takes by itself. Each answer is looked at, and one that is
// wrong fails the run.
package rules
