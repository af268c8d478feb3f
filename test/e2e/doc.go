// Package e2e tests the built binary as people use it. It has no code of its
// own; the scripts in testdata are the tests.
package e2e
