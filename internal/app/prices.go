package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/weirhq/weir/rule"
)

// Prices are a list of what language models cost.
type Prices struct {
	// File has the prices, as rule.Prices reads them. Default none: rules with a price deny every request.
	File string

	// UnknownHighest is as in rule.Prices.
	UnknownHighest bool
}

func (p *Prices) check() error {
	if p.File == "" && p.UnknownHighest {
		return errors.New("--prices-unknown requires --prices; set the file with the prices")
	}
	return nil
}

// openPrices brings the price list into force, before there are rules that ask it.
func (a *App) openPrices(_, background context.Context) error {
	o := &a.options.Prices
	list := &rule.Prices{UnknownHighest: o.UnknownHighest}
	a.options.RuleOptions.Prices = list
	a.prices = &followed{
		app: a, flag: "--prices", what: "the prices", path: o.File, reloaded: a.metrics.PricesReloaded, help: "the log has",
		read: func(file *os.File) (int, error) {
			err := list.Read(o.File, file)
			return list.Len(), err
		},
	}
	if err := a.prices.open(background); err != nil {
		return fmt.Errorf("--prices: %w", err)
	}
	return nil
}

// warnPrices tells of rules that deny every request for want of prices.
func (a *App) warnPrices(table *rule.Table) {
	if a.options.Prices.File != "" {
		return
	}
	for _, r := range table.Rules() {
		if r.Mode != rule.Off && r.Tokens != nil && r.Tokens.Price != "" {
			a.options.Logger.Warn("a rule counts what tokens cost, and there is no price list, so it denies every request; start weir with --prices", "rule", r.ID)
			return
		}
	}
}
