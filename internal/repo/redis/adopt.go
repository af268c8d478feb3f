package redis

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"

	"github.com/redis/rueidis"
	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/rule"
)

//go:embed common.lua
var commonText string

//go:embed adopt.lua
var adoptText string

var adoptScript = rueidis.NewLuaScript(commonText + adoptText)

// adopt makes a version of what somebody has put into Redis by hand. Otherwise it would
// be in force, but not in the history: nobody could go back to it from a later mistake.
//
// That it cannot be done, as by a user who may only read, makes the document no worse.
func (r *Repository) adopt(ctx context.Context, s *state) {
	var old *rule.Set
	if heads, err := r.heads(ctx); err == nil && len(heads) > 0 {
		if v, err := r.load(ctx, heads[0].Number); err == nil {
			old, _ = rule.Parse("", v.Source)
		}
	}
	set, _ := rule.Parse("", s.raw.Source)
	const author = "redis"
	summary := rule.Summarize(old, set)
	sum := digestOf(s.raw.Source).String()

	client, err := r.client()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	sha := sha1.Sum(s.raw.Source) // what Redis can compute; it need not stand an attack
	answer, err := adoptScript.Exec(ctx, client, r.keys, []string{
		strconv.Itoa(repo.MaxHistory), strconv.Itoa(r.maxBytes), s.mark.number, s.mark.sha256,
		hex.EncodeToString(sha[:]), sum, author, summary, r.channel,
	}).AsStrSlice()
	if err != nil || len(answer) != 2 {
		return
	}
	number, err := numberOf(answer[0])
	if err != nil {
		return
	}
	s.mark.number, s.mark.sha256 = answer[0], sum
	s.raw.Number, s.raw.Time, s.raw.Author, s.raw.Summary = number, timeOf(answer[1]), author, summary
}
