package stats

import (
	"context"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// Range is the time that an answer is about. From and To are whole steps, or, in answers
// without steps, whole slots of the archive; From is later than in the query if nothing
// older is kept.
type Range struct {
	From, To time.Time
	Step     time.Duration
	Local    bool // the archive is unavailable, and the data is of this instance alone
}

func (r *Range) setLocal() { r.Local = true }

// grid is a range of time divided into steps, each of which is some slots of a level.
type grid struct {
	level  int
	from   int64 // Unix seconds
	step   int64
	points int64
}

func (g grid) to() int64                  { return g.from + g.points*g.step }
func (g grid) at(start int64) int         { return int((start - g.from) / g.step) }
func (g grid) length() time.Duration      { return time.Duration(g.step) * time.Second }
func (g grid) time(point int64) time.Time { return time.Unix(g.from+point*g.step, 0).UTC() }

func (g grid) span() Range { return Range{From: g.time(0), To: g.time(g.points), Step: g.length()} }

// each reads the slots of the grid.
func (g grid) each(ctx context.Context, a archive.Store, kind archive.Kind, do func(archive.Slot)) error {
	return each(ctx, a, kind, g.level, g.from, g.to(), do)
}

// gridOf covers a range, from a multiple of the step on.
func gridOf(level int, from, to, step int64) grid {
	g := grid{level: level, from: archive.Level{Step: step}.Start(from), step: step}
	g.points = (to - g.from + step - 1) / step
	return g
}

// steps are those that people find natural.
var steps = []int64{1, 5, 10, 30, 60, 5 * 60, 10 * 60, 30 * 60, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600}

// lengthOf is how many seconds a range has.
func lengthOf(from, to time.Time) (int64, error) {
	length := to.Unix() - from.Unix()
	if length < 1 {
		return 0, wrongQuery("the time ends before it begins; name an end that is later")
	}
	return length, nil
}

// plan chooses a level of the series, and a step that is a multiple of its own.
func (r *Recorder) plan(a archive.Store, from, to time.Time, wanted time.Duration, most int64) (g grid, err error) {
	length, err := lengthOf(from, to)
	if err != nil {
		return g, err
	}
	if wanted < 0 {
		return g, wrongQuery("the step %v is negative; leave it 0 to have one chosen", wanted)
	}
	step := int64((wanted + time.Second - 1) / time.Second)
	if step == 0 {
		step = steps[len(steps)-1]
		for _, s := range steps {
			if length/s < idealPoints {
				step = s
				break
			}
		}
	}
	levels := a.Levels(archive.Series)
	level := r.finest(levels, from.Unix(), length)
	for level+1 < len(levels) && levels[level+1].Step <= step && step%levels[level+1].Step == 0 {
		level++ // fewer slots say the same
	}
	if rest := step % levels[level].Step; rest > 0 {
		step += levels[level].Step - rest
	}
	g = gridOf(level, from.Unix(), to.Unix(), step)
	if g.points > most {
		return g, wrongQuery("%d points are too many; ask for at most %d, with a step of %v or more", g.points, most, time.Duration((to.Unix()-g.from)/most+1)*time.Second)
	}
	return g, nil
}

// planKept chooses the finest level that still has the beginning, of the kinds whose
// levels are few and fixed. What is older than all of them is left out.
func (r *Recorder) planKept(a archive.Store, kind archive.Kind, from, to int64) grid {
	levels := a.Levels(kind)
	level := r.finest(levels, from, to-from)
	for level+1 < len(levels) && (to-from)/levels[level].Step > idealPoints {
		level++
	}
	first := levels[level].Start(r.options.Clock().Unix()-levels[level].Keep) + levels[level].Step
	g := gridOf(level, max(from, first), to, levels[level].Step)
	g.points = max(g.points, 0)
	return g
}

// finest is the finest level that still has the beginning, and not too many slots.
func (r *Recorder) finest(levels []archive.Level, from, length int64) int {
	age := r.options.Clock().Unix() - from
	level := 0
	for level+1 < len(levels) && (age > levels[level].Keep || length/levels[level].Step > archive.MaxSlots/2) {
		level++
	}
	return level
}
