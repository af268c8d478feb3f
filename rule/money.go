package rule

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// Dollars is the currency of price lists that name none.
const Dollars = "usd"

// currencies are the codes of ISO 4217, without those of metals, funds and tests. A code is also the unit of rules that count its
// money. They count millionths of it.
const currencies = "aed afn all amd aoa ars aud awg azn bam bbd bdt bhd bif bmd bnd bob brl bsd btn bwp byn bzd cad cdf chf clp cny cop crc cup cve czk djf dkk dop dzd " +
	"egp ern etb eur fjd fkp gbp gel ghs gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr iqd irr isk jmd jod jpy kes kgs khr kmf kpw krw kwd kyd kzt lak lbp lkr lrd lsl lyd " +
	"mad mdl mga mkd mmk mnt mop mru mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sdg sek sgd shp sle sos " +
	"srd ssp stn svc syp szl thb tjs tmt tnd top try ttd twd tzs uah ugx usd uyu uzs ves vnd vuv wst xaf xcd xof xpf yer zar zmw zwg"

func isCurrency(code string) bool {
	return len(code) == 3 && !strings.Contains(code, " ") && strings.Contains(currencies, code)
}

// currencyName is a currency in a sentence.
func currencyName(code string) string {
	if code == Dollars {
		return "dollars"
	}
	return strings.ToUpper(code)
}

var (
	signed = regexp.MustCompile(`^(\p{Sc}[\d.]+|[\d.]+\p{Sc})$`)
	signs  = map[rune]string{'$': Dollars, '€': "eur", '£': "gbp", '₹': "inr", '₩': "krw", '₺': "try", '₪': "ils", '¥': "jpy"} // of one currency each, or of the usual one
)

// parseMoney parses the amount of a rate such as 20usd/day, 20eur/day or $0.50/hour, in millionths. The currency is "" if the
// rate has none.
func parseMoney(rate string) (micros, currency, period string, err error) {
	text, period, found := strings.Cut(rate, "/")
	amount, isDollars := strings.CutPrefix(text, "$")
	switch at := max(0, len(text)-3); {
	case !found:
		return "", "", "", nil
	case isDollars && strings.Trim(amount, "0123456789.") == "":
		currency = Dollars
	case signed.MatchString(text):
		sign := strings.Trim(text, "0123456789.")
		code := cmp.Or(signs[[]rune(sign)[0]], "eur")
		return "", code, "", fmt.Errorf("%s has the sign of a currency; write its code, as in %s%s%s", document.Quote(document.Clip(text, maxName)),
			document.Clip(strings.Trim(text, sign), maxName), code, strings.TrimSuffix("/"+document.Clip(period, maxName), "/"))
	case isCurrency(strings.ToLower(text[at:])):
		amount, currency = text[:at], strings.ToLower(text[at:])
	case isDollars:
		currency = Dollars
	default:
		return "", "", "", nil
	}
	whole, part, _ := strings.Cut(amount, ".")
	if whole == "" || len(whole) > 12 || len(part) > 6 || strings.HasSuffix(amount, ".") || strings.Trim(whole+part, "0123456789") != "" {
		return "", currency, "", fmt.Errorf("%s is not an amount of %s; write for example 20%[3]s/day or 0.50%[3]s/hour, with at most six digits after the point",
			document.Quote(document.Clip(text, maxName)), currencyName(currency), currency)
	}
	micros = strings.TrimLeft(whole+part+strings.Repeat("0", 6-len(part)), "0")
	return cmp.Or(micros, "0"), currency, period, nil
}

// inMoney is what is wrong with a rate of so many millionths, with its suggestions in the currency.
func inMoney(wrong, micros, currency string) string {
	n, _ := strconv.ParseInt(micros, 10, 64) // what is too large is wrong for that
	return strings.NewReplacer(micros+"/", Weight(n).decimal()+currency+"/", "100/1m", "20"+currency+"/day").Replace(wrong)
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

// MoneyText writes millionths of a currency as people read them, exactly and with two digits or more behind the point: $1,234.50 or
// 1,234.50 EUR.
func MoneyText(currency string, micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -max(micros, -weir.MaxUnits)
	}
	whole, part, _ := strings.Cut(Weight(micros).decimal(), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	amount := whole + "." + part + strings.Repeat("0", max(0, 2-len(part)))
	if currency == Dollars {
		return sign + "$" + amount
	}
	return sign + amount + " " + currencyName(currency)
}

// Money returns the currency whose millionths the rule counts, such as "usd", and "" if it counts no money.
func (c *Entry) Money() string { return c.money }

// Display writes a number of units of a limit as people read it, if the rule counts money: $13.37. It is "" otherwise, as a number
// of units needs no other form.
func (c *Entry) Display(l *weir.Compiled, units int64) string {
	if c.money == "" || l.Algorithm() == weir.InFlight {
		return ""
	}
	return MoneyText(c.money, units)
}

// DisplayLimit writes a limit as a rule has it, 20usd/day, and as people read it, $20.00/day. Both are "" if the rule does not count
// money.
func (c *Entry) DisplayLimit(l *weir.Compiled) (policy, forPeople string) {
	if c.money == "" || l.Algorithm() == weir.InFlight {
		return "", ""
	}
	limit := l.Limit()
	policy = Rate{limit.N, limit.Period, c.money}.String()
	_, period, _ := strings.Cut(policy, "/")
	return policy, MoneyText(c.money, limit.N) + "/" + period
}

// priced reports whether the price list says what tokens cost. It is false for nil.
func (t *Tokens) priced() bool { return t != nil && t.Price != "" }

func (p *parser) price(e *document.Element, path string, t *Tokens) {
	text, ok := p.text(e, path, maxText)
	switch code := strings.ToLower(text); {
	case !ok || code == noPrice:
	case isCurrency(code):
		t.Price = code
	default:
		p.errorf("E011", e.Position, path, "%s is not the code of a currency; write usd, or the currency of the price list, such as eur", document.Quote(document.Clip(text, maxName)))
	}
}

const noPrice = "none"

// currency is what the limits of the rule are in and what its tokens cost, which is one, or "".
func (r *Rule) currency() string {
	if r.Tokens.priced() {
		return r.Tokens.Price
	}
	currency := ""
	r.hasQuota(func(q Quota) bool {
		if len(q.Rates) > 0 {
			currency = q.Rates[0].Currency
		}
		return len(q.Rates) > 0
	})
	return currency
}

// wrongMoney says what is wrong with one limit of a rule that may count money, and "" if nothing is: a
// number without currency would be a millionth of what somebody meant.
func (r *Rule) wrongMoney(rate Rate) string {
	switch counts := r.currency(); {
	case counts == "" && rate.Currency != "":
		return fmt.Sprintf("%s is in %s, and the other limits of the rule are not; write all of them in %[2]s", rate, currencyName(rate.Currency))
	case counts == "":
	case rate.Currency == "":
		return fmt.Sprintf("the rule counts %s, and %s has no currency; write for example 20%s/day", currencyName(counts), rate, counts)
	case !isCurrency(counts):
		return fmt.Sprintf("%s is not the code of a currency; write for example %s", document.Quote(document.Clip(counts, maxName)), Dollars)
	case rate.Currency != counts:
		return fmt.Sprintf("%s is in %s, and the rule counts %s; write one currency, because weir knows no exchange rates", rate, currencyName(rate.Currency), currencyName(counts))
	case r.Unit != "" && r.Unit != counts:
		return fmt.Sprintf("a limit in %s counts the unit %s, and the rule has the unit %s; remove unit", currencyName(counts), counts, r.Unit)
	case r.Tokens != nil && !r.Tokens.Weighted():
		return fmt.Sprintf("tokens are no %s; write tokens: {price: %s}, or weights in %[1]s for a million tokens", currencyName(counts), counts)
	}
	return ""
}

// exactly is an amount of money in millionths of millionths, rounded up.
func exactly(text string) (Weight, bool) {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	n.Mul(n, new(big.Rat).SetInt64(int64(MaxWeight)))
	up := new(big.Int).Add(n.Num(), new(big.Int).Sub(n.Denom(), big.NewInt(1)))
	return Weight(up.Quo(up, n.Denom()).Int64()), true
}
