package httpapi

import (
	"bytes"
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

// usualSpend is how long a report is about if its query does not say.
const usualSpend = 29 * 24 * time.Hour

// getSpend answers GET /v1/spend.
func (h *Handler) getSpend(c *call) (any, error) {
	q := c.query("from", "to", "by", "rule", "n", "format")
	now := h.options.Clock()
	var want stats.SpendQuery
	want.To = q.day("to", now).Add(24 * time.Hour)
	want.From = q.day("from", want.To.Add(-24*time.Hour-usualSpend))
	if !want.From.Before(want.To) {
		q.wrong(fault.Field("to", "the range ends before it begins; send a day that is not before from.").Coded("empty-range"))
	}
	want.Rule, want.N = q.name("rule"), int(q.whole("n", 1000, 1, stats.MaxSpending))
	for by := range strings.SplitSeq(q.text("by"), ",") {
		switch by {
		case "":
		case "client":
			want.ByClient = true
		case "model":
			want.ByModel = true
		case "day":
			want.ByDay = true
		default:
			q.wrong(fault.Field("by", "%.40q is unknown; write client, model and day, separated by commas.", by))
		}
	}
	if q.text("format") == "" {
		c.Header().Add("Vary", "Accept")
	}
	asCSV := c.format(q, "csv", "text/csv")
	s, err := consult(h, c, q, "n", want, (*stats.Recorder).Spending)
	if err != nil {
		return nil, err
	}
	answer := spendAnswer(s, want.ByDay)
	if asCSV {
		return text{typeCSV, answer.csv()}, nil
	}
	return answer, nil
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

func spendAnswer(s *stats.Spending, byDay bool) *SpendAnswer {
	answer := &SpendAnswer{
		From: s.From.Format(time.DateOnly), To: s.To.Add(-time.Second).Format(time.DateOnly),
		KeptDays: int(s.Kept / (24 * time.Hour)), Local: s.Local, Lines: []SpendLine{},
	}
	for _, l := range s.Lines {
		line := SpendLine{
			Rule: l.Rule, Level: l.Level, Client: readable(l.Client), Model: readable(l.Model), Requests: l.Requests, Refunds: l.Refunds,
			Currency: l.Currency, Micros: l.Units, Display: rule.MoneyText(l.Currency, l.Units), InputTokens: l.Input, OutputTokens: l.Output,
		}
		switch {
		case l.Others && byDay:
			line.Day = archive.Other
		case byDay:
			line.Day = l.Day.Format(time.DateOnly)
		}
		answer.Lines = append(answer.Lines, line)
	}
	return answer
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
