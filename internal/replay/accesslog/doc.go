// Package accesslog reads the lines of access logs: combined, as nginx and Apache
// write it, JSON, and the default format of Envoy.
//
// A [Parser] takes a line apart where it stands, without copying it and without a
// regular expression. Whatever a client may have got into a log, a line ends in an
// [Entry] or in an error.
package accesslog
