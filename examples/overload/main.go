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

	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/internal/traffic/chart"
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

// writeTable writes how many requests are answered in time, and which are lost, in each phase.
func writeTable(w io.Writer, without, with *history) error {
	_, err := fmt.Fprintf(w, "                      answered in time     lost, by priority\nload                          of capacity   critical      high    normal       low\n")
	for _, world := range []struct {
		name string
		*history
	}{{"without a limiter", without}, {"with weir", with}} {
		for p, load := range loads {
			answered := 0
			lost := ""
			for priority := overload.Critical; priority >= overload.Low; priority-- {
				offered, good := world.inPhase(priority, p)
				answered += good
				lost += fmt.Sprintf("%8.2f %%", 100*(1-float64(good)/float64(offered)))
			}
			if _, wrong := fmt.Fprintf(w, "%3g ×  %-20s %10.2f %s\n", load, world.name, float64(answered)/phase.Seconds()/capacity, lost); wrong != nil {
				err = wrong
			}
		}
	}
	return err
}

// draw draws both, a lane for each priority.
func draw(w io.Writer, without, with *history) error {
	about := func(text string) []string {
		return []string{text, "1600 requests per second are its capacity; clients wait for 1 s"}
	}
	return chart.WriteSVG(w,
		without.picture("Without a limiter", about("A service gets up to five times as many requests as it can answer")),
		with.picture("With weir: an adaptive limit and priorities", about("The same service and the same requests")))
}

func (h *history) picture(title string, about []string) *chart.Picture {
	p := &chart.Picture{
		Title: title, About: about, Slices: len(loads) * slices,
		Legend: []chart.Entry{{Ink: chart.Good, Text: "answered in time"}, {Ink: chart.Bad, Text: "lost"}},
	}
	for i, load := range loads {
		p.Ticks = append(p.Ticks, chart.Tick{Slice: float64(i * slices), Label: fmt.Sprintf("load %g ×", load)})
	}
	for c := overload.Critical; c >= overload.Low; c-- {
		good, bad := chart.Bars{Ink: chart.Good}, chart.Bars{Ink: chart.Bad}
		most, offered, answered := int64(1), 0, 0
		for _, s := range h[c] {
			good.Values = append(good.Values, int64(s.answered))
			bad.Values = append(bad.Values, int64(s.offered-s.answered))
			most = max(most, int64(s.offered))
			offered += s.offered
			answered += s.answered
		}
		p.Lanes = append(p.Lanes, chart.Lane{
			Name: c.String(), Most: most, Bars: []chart.Bars{good, bad},
			Notes: []string{fmt.Sprintf("%.0f %% of requests", 100*mix[c]), fmt.Sprintf("%.2f %% lost", 100*(1-float64(answered)/float64(offered)))},
		})
	}
	return p
}
