// Package file keeps the document of rules in a file that people edit and that
// the API rewrites.
//
// Next to a document rules.yaml is a directory rules.yaml.history with
//
//	7.yaml         version 7: a line that says when, by whom and what, then the document
//	next.yaml      a version that is being written
//	unusable.yaml  a document with errors that was overwritten by the API
//	lock           held by whoever writes
//
// It has the last repo.MaxHistory versions, and may be deleted; then versions are
// counted from 1 again. All files have the permission bits of the document, because
// they have its secrets.
//
// A change by hand is a version by "file", as soon as a repository sees it. A document
// with errors is no version: the one before it stays in force until the errors are
// mended. So does one of which nothing is left, which happens when a disk is full;
// "rules: []" is how to say that there are none.
//
// A crash leaves the old document or the new one. First the new version is written to
// next.yaml, then the document is replaced, then next.yaml gets its number. Whoever
// comes next finds out by comparing the two whether the crash was before or after.
package file
