// Overload shows what becomes of a service that gets up to five times as many requests as it can
// answer: without a limiter, and with weir's adaptive limit and four priorities.
//
//	go run ./examples/overload
//	go run ./examples/overload -out overload.svg
//
// It is a simulation in virtual time, with the same limiter as in weir gateway --adaptive. The
// service answers 1600 requests per second. Clients wait for a second; an answer that comes later
// is lost.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	out := flag.String("out", "", "write a picture (SVG) to this `file`")
	flag.Parse()
	if err := run(os.Stdout, *out); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, out string) error {
	without, with := play(nil), play(newLimiter())
	if err := writeTable(w, without, with); err != nil || out == "" {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := draw(f, without, with); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
