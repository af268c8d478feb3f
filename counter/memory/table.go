package memory

import (
	"cmp"
	"slices"

	"github.com/weirhq/weir/counter"
)

// table is members and their scores. No member has 0.
type table map[string]int64

// addScore changes a score, and returns what it is then.
func (t table) addScore(member string, by int64) int64 {
	score := t[member] + by
	if score == 0 {
		delete(t, member)
	} else {
		t[member] = score
	}
	return score
}

// row is a line of a ranking.
type row struct {
	member string
	score  int64
}

// compare puts the higher score first, and equal ones in the order of their members.
func (a row) compare(b row) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return cmp.Compare(a.member, b.member)
}

// top is the first n rows. There may be many members, and few of them are asked for.
func (t table) top(n int) []row {
	best := make([]row, 0, min(n, len(t)))
	for member, score := range t {
		r := row{member, score}
		if len(best) == n {
			if r.compare(best[n-1]) > 0 {
				continue
			}
			best = best[:n-1]
		}
		i, _ := slices.BinarySearchFunc(best, r, row.compare)
		best = slices.Insert(best, i, r)
	}
	return best
}

// rank is how many come before a member, and one.
func (t table) rank(member string) int {
	score, ok := t[member]
	if !ok {
		return 0
	}
	mine, rank := row{member, score}, 1
	for other, score := range t {
		if (row{other, score}).compare(mine) < 0 {
			rank++
		}
	}
	return rank
}

// trim drops the lowest until there are n, and returns who they were.
func (t table) trim(n int) []row {
	all := make([]row, 0, len(t))
	for member, score := range t {
		all = append(all, row{member, score})
	}
	slices.SortFunc(all, row.compare)
	for _, r := range all[n:] {
		delete(t, r.member)
	}
	return all[n:]
}

func (t table) ranking(n int) []counter.Standing {
	rows := t.top(n)
	places := make([]counter.Standing, len(rows))
	for i, r := range rows {
		places[i] = counter.Standing{Member: r.member, Rank: i + 1, Score: counter.Amount(r.score)}
	}
	return places
}

func (t table) standing(members []string) []counter.Standing {
	places := make([]counter.Standing, len(members))
	for i, member := range members {
		places[i] = counter.Standing{Member: member, Rank: t.rank(member), Score: counter.Amount(t[member])}
	}
	return places
}

// fits reports whether all scores stay in their range, even if a member is named twice.
func (t table) fits(marks []counter.Mark) bool {
	sums := make(map[string]counter.Amount, len(marks))
	for _, m := range marks {
		sum, known := sums[m.Member]
		if !known {
			sum = counter.Amount(t[m.Member])
		}
		sum += m.By
		if sum > counter.MaxScore || sum < -counter.MaxScore {
			return false
		}
		sums[m.Member] = sum
	}
	return true
}
