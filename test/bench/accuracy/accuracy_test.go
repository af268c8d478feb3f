package accuracy

import (
	"bytes"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

func TestAlgorithmsKeepTheirPromises(t *testing.T) {
	for _, kind := range Kinds(true) {
		limits := append(kind.Limits(), kind.CountingLimits()...)
		results, err := kind.Run(limits, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			v, name := r.Verdict, kind.Name+", "+r.Limit.String()
			if v.Requests == 0 || v.Over == 0 || v.Allowed == v.Requests {
				t.Errorf("%s: no request is denied, so nothing is tested", name)
			}
			if v.Most > r.Bound {
				t.Errorf("%s: %d in a period, bound %d", name, v.Most, r.Bound)
			}
			switch r.Limit.Algorithm {
			case weir.SlidingLog:
				if v.FalselyAllowed+v.FalselyDenied > 0 {
					t.Errorf("%s: an exact log decided %d + %d requests wrongly", name, v.FalselyAllowed, v.FalselyDenied)
				}
			case weir.SlidingBuckets:
				if v.FalselyAllowed > 0 {
					t.Errorf("%s: %d false allowances", name, v.FalselyAllowed)
				}
			case weir.TokenBucket, weir.LeakyBucket:
				// A client that empties a bucket of N got N units in the last period.
				if v.FalselyDenied > 0 {
					t.Errorf("%s: %d false denials", name, v.FalselyDenied)
				}
			}
		}
	}
}

// The attack is worth its name only if it gets what the bounds allow.
func TestAttackReachesTheBounds(t *testing.T) {
	attack := Attack(64, 60)
	results, err := attack.Run(attack.Limits(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Verdict.Most != r.Bound {
			t.Errorf("%s: the attack got %d in a period, %d are to be had", r.Limit.Algorithm, r.Verdict.Most, r.Bound)
		}
	}
}

func TestReportIsDeterministic(t *testing.T) {
	var first, second bytes.Buffer
	if err := Report(&first, true, nil); err != nil {
		t.Fatal(err)
	}
	if err := Report(&second, true, nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("two runs differ:\n%s\n%s", first.String(), second.String())
	}
}

// liar answers as told, whatever is right.
type liar struct {
	Subject
	lie func(request int, honest bool) bool
	at  int
}

func (l *liar) Take(now weir.Micros) weir.Decision {
	d := l.Subject.Take(now)
	d.Allowed = l.lie(l.at, d.Allowed)
	l.at++
	return d
}

func exact(n int64) Subject {
	c, err := weir.Limit{Algorithm: weir.SlidingLog, N: n, Period: time.Minute}.Compile()
	if err != nil {
		panic(err)
	}
	return newArithmetic(c)
}

func TestJudgeNoticesWrongLimiters(t *testing.T) {
	kind := Bursts(10, 20, 60)
	if v := kind.Judge(exact(60), false); v.FalselyAllowed+v.FalselyDenied > 0 || v.Most != 60 {
		t.Fatalf("the honest log is found guilty: %+v", v)
	}
	yes := &liar{Subject: exact(60), lie: func(int, bool) bool { return true }}
	if v := kind.Judge(yes, false); v.FalselyAllowed == 0 || v.Gross == 0 || v.Most <= 60 {
		t.Errorf("one that allows everybody passes: %+v", v)
	}
	no := &liar{Subject: exact(60), lie: func(int, bool) bool { return false }}
	if v := kind.Judge(no, false); v.FalselyDenied != v.Requests {
		t.Errorf("one that denies everybody passes: %+v", v)
	}
	if v := kind.Judge(exact(61), false); v.FalselyAllowed == 0 || v.FalselyDenied > 0 || v.Most != 61 {
		t.Errorf("one unit too many goes unnoticed: %+v", v)
	}
	if v := kind.Judge(exact(59), false); v.FalselyDenied == 0 || v.FalselyAllowed > 0 || v.Most != 59 {
		t.Errorf("one unit too few goes unnoticed: %+v", v)
	}
	once := &liar{Subject: exact(60), lie: func(i int, honest bool) bool { return honest && i != 10 }}
	if v := kind.Judge(once, false); v.FalselyDenied == 0 {
		t.Errorf("a single lie goes unnoticed: %+v", v)
	}
}

// A unit stops counting exactly a period after it was taken, not before.
func TestJudgeAtTheEdge(t *testing.T) {
	for _, c := range []struct {
		after weir.Micros
		wrong int64
	}{{micros(time.Minute) - 1, 1}, {micros(time.Minute), 0}} {
		j := &judge{subject: &liar{lie: func(int, bool) bool { return true }, Subject: exact(1)}, n: 1, period: micros(time.Minute)}
		j.take(dawn)
		j.take(dawn + c.after)
		j.next()
		if got := j.verdict.FalselyAllowed; got != c.wrong {
			t.Errorf("allowed again %d µs later: %d wrong, want %d", c.after, got, c.wrong)
		}
	}
}
