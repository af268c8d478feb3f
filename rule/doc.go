// Package rule says who is limited, by what: rules as people write them, and the
// table that a request is looked up in.
//
// A [Set] is one document, in YAML or JSON; [Parse] reads it and reports everything
// that is wrong with it at once, each with line, column and remedy. [Compile] turns
// a set into a [Table], which never changes: whoever has one can match requests
// against it from any goroutine, in a time that does not depend on how many other
// rules there are.
//
// The package knows no store and decides nothing.
package rule
