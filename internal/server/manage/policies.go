package manage

import (
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// Policies are limits as rules write them, such as "100/1m". To make such a text costs
// more than all else that is said of a limit, so it is made once for each; when other
// rules are in force, all are forgotten. The zero value is ready to use.
type Policies struct{ now atomic.Pointer[policyTexts] }

type policyTexts struct {
	table *rule.Table
	texts sync.Map // *weir.Compiled → string
}

// Of returns the text of a limit that an engine has asked.
func (p *Policies) Of(limit *weir.Compiled, e *engine.Engine) string {
	table, _ := e.Rules()
	known := p.now.Load()
	if known == nil || known.table != table {
		known = &policyTexts{table: table}
		p.now.Store(known)
	}
	if text, ok := known.texts.Load(limit); ok {
		return text.(string)
	}
	text := limit.Limit().Rate()
	known.texts.Store(limit, text)
	return text
}
