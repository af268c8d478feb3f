// Package testkit has what tests of several packages need: short calls, what their heap and their
// goroutines leave behind, documents that quote examples, and programs that end with this process.
package testkit

import "testing"

// Must takes what a call returns, and ends the test if that is an error:
//
//	version := testkit.Must(repository.Current(t.Context()))(t)
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// OK ends the test if a call has failed.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Err is the error of a call, for a test that is about nothing else.
func Err[T any](_ T, err error) error { return err }
