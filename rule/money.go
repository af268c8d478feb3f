package rule

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// dollars is the currency of price lists, and the unit of rules that count it. They count its millionths.
const dollars = "usd"

// otherCurrency is an amount with the code or the sign of a currency other than the dollar.
var otherCurrency = regexp.MustCompile(`(?i)^(\p{Sc}[\d.]+|[\d.]+(\p{Sc}|eur|gbp|jpy|cny|rmb|chf|cad|aud|inr|krw|sek|brl))$`)

// parseMoney parses the amount of a rate such as 20usd/day or $0.50/hour, in millionths. It is false if the
// rate has no currency.
func parseMoney(rate string) (micros, period string, isMoney bool, err error) {
	text, period, found := strings.Cut(rate, "/")
	amount, isMoney := strings.CutSuffix(strings.ToLower(text), dollars)
	if !isMoney {
		amount, isMoney = strings.CutPrefix(text, "$")
	}
	if number, isBehind := strings.CutSuffix(text, "$"); found && isBehind && strings.Trim(number, "0123456789.") == "" {
		number, per := document.Clip(number, maxName), strings.TrimSuffix("/"+document.Clip(period, maxName), "/")
		return "", "", true, fmt.Errorf("%s has the sign behind the amount; write $%s%s or %[2]susd%[3]s", document.Quote(number+"$"), number, per)
	}
	if found && !isMoney && otherCurrency.MatchString(text) {
		return "", "", true, fmt.Errorf("%s is not in dollars, and price lists are; write an amount of dollars, for example 20usd/day", document.Quote(document.Clip(text, maxName)))
	}
	if !isMoney || !found {
		return "", "", false, nil
	}
	whole, part, _ := strings.Cut(amount, ".")
	if whole == "" || len(whole) > 12 || len(part) > 6 || strings.HasSuffix(amount, ".") || strings.Trim(whole+part, "0123456789") != "" {
		return "", "", true, fmt.Errorf("%s is not an amount of dollars; write for example 20usd/day or 0.50usd/hour, with at most six digits after the point", document.Quote(document.Clip(text, maxName)))
	}
	micros = strings.TrimLeft(whole+part+strings.Repeat("0", 6-len(part)), "0")
	if micros == "" {
		micros = "0"
	}
	return micros, period, true, nil
}

// inDollars is what is wrong with a rate of so many millionths, with its suggestions in dollars.
func inDollars(wrong, micros string) string {
	n, _ := strconv.ParseInt(micros, 10, 64) // what is too large is wrong for that
	return strings.NewReplacer(micros+"/", Weight(n).decimal()+dollars+"/", "100/1m", "20usd/day").Replace(wrong)
}

// moneyString is a rate in millionths of a currency as its amount, with the name of a period of the calendar.
func (r Rate) moneyString() string {
	_, period, _ := strings.Cut(weir.Limit{N: r.N, Period: r.Period}.Rate(), "/")
	switch r.Period {
	case time.Hour:
		period = "hour"
	case 24 * time.Hour:
		period = "day"
	case 7 * 24 * time.Hour:
		period = "week"
	}
	return Weight(r.N).decimal() + r.Currency + "/" + period
}

// DollarText writes millionths of a dollar as people read them, exactly and with two digits or more behind the point: $1,234.50.
func DollarText(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -max(micros, -weir.MaxUnits)
	}
	whole, part, _ := strings.Cut(Weight(micros).decimal(), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + "$" + whole + "." + part + strings.Repeat("0", max(0, 2-len(part)))
}

// Money reports whether the rule counts money: its units are millionths of a dollar.
func (c *Entry) Money() bool { return c.money }

// Display writes a number of units of a limit as people read it, if the rule counts money: $13.37. It is "" otherwise, as a number
// of units needs no other form.
func (c *Entry) Display(l *weir.Compiled, units int64) string {
	if !c.money || l.Algorithm() == weir.InFlight {
		return ""
	}
	return DollarText(units)
}

// DisplayLimit writes a limit as a rule has it, 20usd/day, and as people read it, $20.00/day. Both are "" if the rule does not count
// money.
func (c *Entry) DisplayLimit(l *weir.Compiled) (policy, forPeople string) {
	if !c.money || l.Algorithm() == weir.InFlight {
		return "", ""
	}
	limit := l.Limit()
	policy = Rate{limit.N, limit.Period, dollars}.String()
	_, period, _ := strings.Cut(policy, "/")
	return policy, DollarText(limit.N) + "/" + period
}

// Price is the currency in which a rule counts what tokens cost.
type Price uint8

const (
	NoPrice Price = iota // Weights and Models say what tokens cost
	Dollars              // the prices of Options.Prices, in millionths of a dollar
)

var prices = vocabulary[Price]{"Price", []string{NoPrice: "none", Dollars: dollars}, map[string]string{"$": dollars, "dollars": dollars, "true": dollars}}

// ParsePrice parses "none" or "usd".
func ParsePrice(name string) (Price, error) { return prices.parse(name) }

// String returns the name, which ParsePrice accepts.
func (p Price) String() string { return prices.name(p) }

// priced reports whether the price list says what tokens cost. It is false for nil.
func (t *Tokens) priced() bool { return t != nil && t.Price == Dollars }

// isMoney reports whether the rule counts millionths of a dollar: all limits of a rule do, or none.
func (r *Rule) isMoney() bool {
	currency := ""
	r.hasQuota(func(q Quota) bool {
		if len(q.Rates) > 0 {
			currency = q.Rates[0].Currency
		}
		return len(q.Rates) > 0
	})
	return r.Tokens.priced() || currency != ""
}

// wrongMoney says what is wrong with one limit of a rule that may count money, and "" if nothing is: a
// number without currency would be a millionth of what somebody meant.
func (r *Rule) wrongMoney(rate Rate) string {
	switch isMoney := r.isMoney(); {
	case !isMoney && rate.Currency != "":
		return fmt.Sprintf("%s is in dollars, and the other limits of the rule are not; write all of them in dollars", rate)
	case isMoney && rate.Currency == "":
		return fmt.Sprintf("the rule counts dollars, and %s has no currency; write for example 20usd/day", rate)
	case isMoney && r.Unit != "" && r.Unit != dollars:
		return fmt.Sprintf("a limit in dollars counts the unit usd, and the rule has the unit %s; remove unit", r.Unit)
	case isMoney && r.Tokens != nil && !r.Tokens.Weighted():
		return "tokens are no dollars; write tokens: {price: usd}, or weights in dollars for a million tokens"
	}
	return ""
}

// exactly is a number of dollars in millionths of millionths, rounded up.
func exactly(text string) (Weight, bool) {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	n.Mul(n, new(big.Rat).SetInt64(int64(MaxWeight)))
	up := new(big.Int).Add(n.Num(), new(big.Int).Sub(n.Denom(), big.NewInt(1)))
	return Weight(up.Quo(up, n.Denom()).Int64()), true
}
