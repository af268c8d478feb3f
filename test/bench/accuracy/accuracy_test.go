package accuracy

import (
	"bytes"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestAlgorithmsKeepTheirPromises(t *testing.T) {
	for _, kind := range kinds(true) {
		limits := append(kind.limits(), kind.countingLimits()...)
		for _, r := range kind.run(bench.Test(t), "", limits) {
			v, name := r.verdict, kind.name+", "+r.limit.String()
			if v.requests == 0 || v.over == 0 || v.allowed == v.requests {
				t.Errorf("%s: no request is denied, so nothing is tested", name)
			}
			if v.most > r.bound {
				t.Errorf("%s: %d in a period, bound %d", name, v.most, r.bound)
			}
			switch r.limit.Algorithm {
			case weir.SlidingLog:
				if v.falselyAllowed+v.falselyDenied > 0 {
					t.Errorf("%s: an exact log decided %d + %d requests wrongly", name, v.falselyAllowed, v.falselyDenied)
				}
			case weir.SlidingBuckets:
				if v.falselyAllowed > 0 {
					t.Errorf("%s: %d false allowances", name, v.falselyAllowed)
				}
			case weir.TokenBucket, weir.LeakyBucket:
				// A client that empties a bucket of N got N units in the last period.
				if v.falselyDenied > 0 {
					t.Errorf("%s: %d false denials", name, v.falselyDenied)
				}
			}
		}
	}
}

// The attack is worth its name only if it gets what the bounds allow.
func TestAttackReachesTheBounds(t *testing.T) {
	attack := attack(64, 60)
	for _, r := range attack.run(bench.Test(t), "", attack.limits()) {
		if r.verdict.most != r.bound {
			t.Errorf("%s: the attack got %d in a period, %d are to be had", r.limit.Algorithm, r.verdict.most, r.bound)
		}
	}
}

func TestRunIsDeterministic(t *testing.T) {
	first, second := bench.Test(t), bench.Test(t)
	for _, r := range []*bench.Run{first, second} {
		run(r, []traffic{zipf(200, 20_000, 60), attack(8, 60)})
	}
	if a, b := first.File("accuracy.txt"), second.File("accuracy.txt"); a.Len() == 0 || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("two runs differ:\n%s\n%s", a, b)
	}
}

// liar answers as told, whatever is right.
type liar struct {
	subject
	lie func(request int, honest bool) bool
	at  int
}

func (l *liar) Take(now weir.Micros) weir.Decision {
	d := l.subject.Take(now)
	d.Allowed = l.lie(l.at, d.Allowed)
	l.at++
	return d
}

func exact(n int64) subject {
	c, err := weir.Limit{Algorithm: weir.SlidingLog, N: n, Period: time.Minute}.Compile()
	if err != nil {
		panic(err)
	}
	return newArithmetic(c)
}

func TestJudgeNoticesWrongLimiters(t *testing.T) {
	kind := bursts(10, 20, 60)
	if v := kind.judge(exact(60), false); v.falselyAllowed+v.falselyDenied > 0 || v.most != 60 {
		t.Fatalf("the honest log is found guilty: %+v", v)
	}
	yes := &liar{subject: exact(60), lie: func(int, bool) bool { return true }}
	if v := kind.judge(yes, false); v.falselyAllowed == 0 || v.gross == 0 || v.most <= 60 {
		t.Errorf("one that allows everybody passes: %+v", v)
	}
	no := &liar{subject: exact(60), lie: func(int, bool) bool { return false }}
	if v := kind.judge(no, false); v.falselyDenied != v.requests {
		t.Errorf("one that denies everybody passes: %+v", v)
	}
	if v := kind.judge(exact(61), false); v.falselyAllowed == 0 || v.falselyDenied > 0 || v.most != 61 {
		t.Errorf("one unit too many goes unnoticed: %+v", v)
	}
	if v := kind.judge(exact(59), false); v.falselyDenied == 0 || v.falselyAllowed > 0 || v.most != 59 {
		t.Errorf("one unit too few goes unnoticed: %+v", v)
	}
	once := &liar{subject: exact(60), lie: func(i int, honest bool) bool { return honest && i != 10 }}
	if v := kind.judge(once, false); v.falselyDenied == 0 {
		t.Errorf("a single lie goes unnoticed: %+v", v)
	}
}

// A unit stops counting exactly a period after it was taken, not before.
func TestJudgeAtTheEdge(t *testing.T) {
	for _, c := range []struct {
		after weir.Micros
		wrong int64
	}{{micros(time.Minute) - 1, 1}, {micros(time.Minute), 0}} {
		j := &judge{subject: &liar{lie: func(int, bool) bool { return true }, subject: exact(1)}, n: 1, period: micros(time.Minute)}
		j.take(dawn)
		j.take(dawn + c.after)
		j.next()
		if got := j.verdict.falselyAllowed; got != c.wrong {
			t.Errorf("allowed again %d µs later: %d wrong, want %d", c.after, got, c.wrong)
		}
	}
}
