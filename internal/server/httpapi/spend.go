package httpapi

import (
	"bytes"
	"context"
	"encoding/csv"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// SpendAnswer is what GET /v1/spend answers.
type SpendAnswer struct {
	From     string      `json:"from"` // the first day, in UTC
	To       string      `json:"to"`   // the last day
	KeptDays int         `json:"kept_days"`
	Local    bool        `json:"local,omitempty"` // as in SeriesAnswer
	Lines    []SpendLine `json:"lines"`
}

// SpendLine is what a rule has charged, and, as far as it was asked for, whom, for which model and on which day. Others are
// "(other)".
type SpendLine struct {
	Rule         string `json:"rule"`
	Level        string `json:"level,omitempty"` // of the client, if the rule has levels
	Client       string `json:"client,omitempty"`
	Model        string `json:"model,omitempty"`
	Day          string `json:"day,omitempty"`
	Requests     int64  `json:"requests"`
	Refunds      int64  `json:"refunds,omitempty"`
	Currency     string `json:"currency"` // such as "usd"
	Micros       int64  `json:"micros"`   // millionths of it
	Display      string `json:"display"`  // the same, such as "$13.37"
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
}

// spendQuery is a question for a report, and the form of the answer.
type spendQuery struct {
	stats.SpendQuery
	csv bool
}

// usualSpend is how long a report is about if its query does not say.
const usualSpend = 29 * 24 * time.Hour

func askSpend(r *stats.Recorder, ctx context.Context, q spendQuery) (*stats.Spending, error) {
	return r.Spending(ctx, q.SpendQuery)
}

func (h *Handler) readSpend(c *call) (s spendQuery, err error) {
	q := c.query("from", "to", "by", "rule", "n", "format")
	now := h.options.Clock()
	s.To = q.day("to", now).Add(24 * time.Hour)
	s.From = q.day("from", s.To.Add(-24*time.Hour-usualSpend))
	if !s.From.Before(s.To) {
		q.wrong(fault.BadField.Of("to: the range ends before it begins; send a day that is not before from.").In("to").Coded("empty-range"))
	}
	s.Rule, s.N = q.name("rule"), int(q.whole("n", 1000, 1, stats.MaxSpending))
	for by := range strings.SplitSeq(q.text("by"), ",") {
		switch by {
		case "":
		case "client":
			s.ByClient = true
		case "model":
			s.ByModel = true
		case "day":
			s.ByDay = true
		default:
			q.wrong(fault.BadField.Of("by: %.40q is unknown; write client, model and day, separated by commas.", by).In("by"))
		}
	}
	switch format := q.text("format"); format {
	case "csv", "json":
		s.csv = format == "csv"
	case "":
		c.Header().Add("Vary", "Accept")
		s.csv = c.prefers("text/csv")
	default:
		q.wrong(fault.BadField.Of("format: %.40q is unknown; write csv or json.", format).In("format"))
	}
	return s, q.err
}

// day is the day in UTC that the query says, as a date or as a time in it.
func (q *query) day(field string, usual time.Time) time.Time {
	day := usual
	if date, err := time.Parse(time.DateOnly, q.text(field)); err == nil && date.Unix() >= 0 {
		day = date
	} else {
		day = q.instant(field, usual)
	}
	return day.UTC().Truncate(24 * time.Hour)
}

// spend is the answer of what was spent.
func (h *Handler) spend(q spendQuery, s *stats.Spending) (any, error) {
	answer := SpendAnswer{
		From: s.From.Format(time.DateOnly), To: s.To.Add(-time.Second).Format(time.DateOnly),
		KeptDays: int(s.Kept / (24 * time.Hour)), Local: s.Local, Lines: []SpendLine{},
	}
	for _, l := range s.Lines {
		line := SpendLine{
			Rule: l.Rule, Level: l.Level, Client: readable(l.Client), Model: readable(l.Model), Requests: l.Requests, Refunds: l.Refunds,
			Currency: l.Currency, Micros: l.Units, Display: rule.MoneyText(l.Currency, l.Units), InputTokens: l.Input, OutputTokens: l.Output,
		}
		switch {
		case l.Others && q.ByDay:
			line.Day = archive.Other
		case q.ByDay:
			line.Day = l.Day.Format(time.DateOnly)
		}
		answer.Lines = append(answer.Lines, line)
	}
	if q.csv {
		return text{typeCSV, answer.csv()}, nil
	}
	return answer, nil
}

var typeCSV = []string{"text/csv; charset=utf-8; header=present"}

// csv is the lines as a table for spreadsheets.
func (a *SpendAnswer) csv() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write([]string{"rule", "level", "client", "model", "day", "requests", "refunds", "currency", "micros", "amount", "input_tokens", "output_tokens"})
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, l := range a.Lines {
		amount, _, _ := strings.Cut(strings.NewReplacer("$", "", ",", "").Replace(l.Display), " ")
		w.Write([]string{l.Rule, cell(l.Level), cell(l.Client), cell(l.Model), l.Day, whole(l.Requests), whole(l.Refunds), l.Currency, whole(l.Micros), amount, whole(l.InputTokens), whole(l.OutputTokens)})
	}
	w.Flush() // a buffer has no errors
	return b.Bytes()
}

// cell is a text that no spreadsheet takes for a formula: clients choose the names of models.
func cell(text string) string {
	if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") {
		return "'" + text
	}
	return text
}
