// Package e2e tests the built binary as people use it. It has no code of its
// own; the scripts in testdata are the tests. It is a module of its own, so that only its tests need
// a library for browsers and one for scripts.
package e2e
