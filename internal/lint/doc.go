// Package lint holds the rules of this repository that a compiler does not
// know, as tests: who may import whom, that every package says what it is for,
// and what the arithmetic must not touch. Run them with make lint.
package lint
