// Package lint has tests for the rules of this repository that a compiler cannot
// check: which package may import which, that every package has a description,
// and what the arithmetic must not use. Run them with make lint.
package lint
