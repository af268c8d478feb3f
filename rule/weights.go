package rule

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// Weight is a number of units for each token, in millionths of a unit.
type Weight int64

// MaxWeight is the maximum of a Weight: a million units.
const MaxWeight Weight = 1e12

// Free is a weight of 0 for a kind of tokens that otherwise costs as much as the kind it belongs to.
const Free Weight = -1

const oneUnit Weight = 1e6

// Weights are the units that tokens cost. The sum is rounded up once for each request. Kinds that
// vendors report apart belong to the prompt or to the answer, and cost as much as the rest of it
// unless they have a weight of their own: none of them is free without being Free.
type Weights struct {
	Input  Weight // tokens of the prompt
	Output Weight // tokens of the answer
	Cached Weight // tokens of the prompt that the vendor reads from its cache

	CacheWrite   Weight // tokens of the prompt that are written to the vendor's cache; 0 is Input
	CacheWrite1h Weight // those that stay there for an hour; 0 is CacheWrite
	AudioInput   Weight // tokens of audio in the prompt; 0 is Input
	ImageInput   Weight // tokens of images in the prompt; 0 is Input
	Reasoning    Weight // tokens of the answer that are not shown; 0 is Output
	AudioOutput  Weight // tokens of audio in the answer; 0 is Output
	ImageOutput  Weight // tokens of images in the answer; 0 is Output

	ToolCall Weight // a search of the web or of files that the vendor makes; 0 costs nothing, because it is no token
}

// everyToken counts each token once.
var everyToken = Weights{Input: oneUnit, Output: oneUnit, Cached: oneUnit}

// Usage is the number of tokens that a request used.
type Usage struct {
	Input        int64 // tokens of the prompt, with those of the five kinds below
	Cached       int64 // that were read from the vendor's cache
	CacheWrite   int64 // that were written to the vendor's cache, for a few minutes
	CacheWrite1h int64 // that were written to the vendor's cache for an hour
	AudioInput   int64 // of audio, and not cached
	ImageInput   int64 // of images, and not cached

	Output      int64 // tokens of the answer, with those of the three kinds below
	Reasoning   int64 // that are not shown
	AudioOutput int64
	ImageOutput int64

	ToolCalls int64 // searches that the vendor made

	Tier ServiceTier // in which the vendor served the request
}

// ServiceTier is how a vendor serves a request: faster or slower, at another price.
type ServiceTier uint8

const (
	StandardTier ServiceTier = iota // or one without prices of its own
	FlexTier
	PriorityTier
	BatchTier
	serviceTiers
)

// ParseServiceTier returns the tier with a name of a vendor's API; StandardTier for names without prices of their own.
func ParseServiceTier(name string) ServiceTier {
	switch strings.ToLower(name) {
	case "flex":
		return FlexTier
	case "priority":
		return PriorityTier
	case "batch":
		return BatchTier
	}
	return StandardTier
}

// own is a weight, or that of the kind it belongs to.
func own(w, usual Weight) Weight {
	switch w {
	case 0:
		return usual
	case Free:
		return 0
	}
	return w
}

// charge is so many tokens at a weight.
type charge struct {
	tokens int64
	weight Weight
}

// charges are what the usage is made of. No token counts twice: kinds that a vendor reports
// with more tokens than the whole has are cut, those that usually cost least first.
func (w *Weights) charges(u *Usage) [11]charge {
	input, output := clamp(u.Input), clamp(u.Output)
	part := func(whole *int64, n int64, weight Weight) charge {
		n = min(clamp(n), *whole)
		*whole -= n
		return charge{n, weight}
	}
	write := own(w.CacheWrite, w.Input)
	return [...]charge{
		part(&input, u.CacheWrite1h, own(w.CacheWrite1h, write)),
		part(&input, u.CacheWrite, write),
		part(&input, u.AudioInput, own(w.AudioInput, w.Input)),
		part(&input, u.ImageInput, own(w.ImageInput, w.Input)),
		part(&input, u.Cached, w.Cached),
		{input, w.Input},
		part(&output, u.AudioOutput, own(w.AudioOutput, w.Output)),
		part(&output, u.ImageOutput, own(w.ImageOutput, w.Output)),
		part(&output, u.Reasoning, own(w.Reasoning, w.Output)),
		{output, w.Output},
		{clamp(u.ToolCalls), w.ToolCall},
	}
}

func (w *Weights) cost(u *Usage) int64 {
	charges := w.charges(u)
	return total(charges[:])
}

// total is the sum of charges, rounded up once.
func total(charges []charge) int64 {
	var high, low uint64
	for _, c := range charges {
		h, l := bits.Mul64(uint64(c.tokens), uint64(max(0, min(c.weight, mostAmount*MaxWeight))))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	}
	low, carry := bits.Add64(low, uint64(oneUnit)-1, 0)
	if high += carry; high >= uint64(oneUnit) {
		return weir.MaxUnits
	}
	sum, _ := bits.Div64(high, low, uint64(oneUnit))
	return int64(min(sum, weir.MaxUnits))
}

// highest are the weights if all that a request asks to cache is written to the cache and the model thinks the
// whole time, where these cost more.
func (w Weights) highest(p *Prompt) Weights {
	if p.Caches {
		write := own(w.CacheWrite, w.Input)
		w.Input = max(w.Input, write, own(w.CacheWrite1h, write))
	}
	w.Output = max(w.Output, own(w.Reasoning, w.Output))
	return w
}

// kinds are all weights, those first that have no other kind to cost as much as.
func (w *Weights) kinds() []Weight {
	return []Weight{
		w.Input, w.Output, w.Cached, w.ToolCall,
		w.CacheWrite, w.CacheWrite1h, w.AudioInput, w.ImageInput, w.Reasoning, w.AudioOutput, w.ImageOutput,
	}
}

// some reports whether something has a weight.
func (w Weights) some() bool { return slices.Max(w.kinds()) > 0 }

func (w Weights) validate() error {
	kinds := w.kinds()
	if slices.Min(kinds[:4]) < 0 || slices.Min(kinds) < Free || slices.Max(kinds) > MaxWeight {
		return fmt.Errorf("tokens: weights: out of range; write 0 to %d", MaxWeight/oneUnit)
	}
	return nil
}

// ParseWeight parses a number of units with up to six digits after the point, such as "0.1".
func ParseWeight(text string) (Weight, error) {
	whole, part, _ := strings.Cut(text, ".")
	if text != "" && len(whole) <= 7 && len(part) <= 6 && strings.Trim(whole+part, "0123456789") == "" && whole+part != "" && !strings.HasSuffix(text, ".") {
		n, err := strconv.ParseInt("0"+whole+part+strings.Repeat("0", 6-len(part)), 10, 64)
		if err == nil && Weight(n) <= MaxWeight {
			return Weight(n), nil
		}
	}
	return 0, fmt.Errorf("%s is not a weight; write a number from 0 to %d with at most six digits after the point, such as 0.1", document.Quote(text), MaxWeight/oneUnit)
}

// String returns the notation that ParseWeight accepts.
func (w Weight) String() string {
	return own(w, 0).decimal()
}

// decimal is a number of millionths.
func (w Weight) decimal() string {
	text := fmt.Sprintf("%d.%06d", w/oneUnit, w%oneUnit)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

var weightFields = newTable(
	weightField("input", func(*Weights) Weight { return oneUnit }, func(w *Weights) *Weight { return &w.Input }),
	weightField("output", func(*Weights) Weight { return oneUnit }, func(w *Weights) *Weight { return &w.Output }),
	weightField("cached", func(w *Weights) Weight { return w.Input }, func(w *Weights) *Weight { return &w.Cached }),
	kindField("cache_write", func(w *Weights) *Weight { return &w.CacheWrite }),
	kindField("cache_write_1h", func(w *Weights) *Weight { return &w.CacheWrite1h }),
	kindField("audio_input", func(w *Weights) *Weight { return &w.AudioInput }),
	kindField("image_input", func(w *Weights) *Weight { return &w.ImageInput }),
	kindField("reasoning", func(w *Weights) *Weight { return &w.Reasoning }),
	kindField("audio_output", func(w *Weights) *Weight { return &w.AudioOutput }),
	kindField("image_output", func(w *Weights) *Weight { return &w.ImageOutput }),
	weightField("tool_call", func(*Weights) Weight { return 0 }, func(w *Weights) *Weight { return &w.ToolCall }),
)

// weights reads what tokens cost. What is not given costs as much as usual; a cached token as
// much as another.
func (p *parser) weights(e *document.Element, field string) Weights {
	w := Weights{Input: oneUnit, Output: oneUnit, Cached: unset}
	if weightFields.readFields(p, e, field, &w) == nil {
		return Weights{}
	}
	if w = w.filled(); !w.some() {
		p.errorf("E030", e.Position, field, "all weights are 0, so no request would cost anything; write one above 0")
	}
	return w
}

func weightField(name string, usual func(*Weights) Weight, of func(*Weights) *Weight) field[Weights] {
	return field[Weights]{name, func(p *parser, e *document.Element, path string, w *Weights) {
		if text, ok := p.text(e, path, maxText); ok {
			if n, err := ParseWeight(text); err != nil {
				p.errorf("E030", e.Position, path, "%v", err)
			} else {
				*of(w) = n
			}
		}
	}, func(w *Weights) *document.Element {
		return unless(usual(w), *of(w), func(n Weight) *document.Element { return document.NewNumber(n.String()) })
	}}
}

// kindField is the weight of a kind that belongs to another one. Its 0 is Free, and it is not written if it is
// that of the other.
func kindField(name string, of func(*Weights) *Weight) field[Weights] {
	f := weightField(name, func(*Weights) Weight { return 0 }, of)
	read := f.read
	f.read = func(p *parser, e *document.Element, path string, w *Weights) {
		if read(p, e, path, w); *of(w) == 0 {
			*of(w) = Free
		}
	}
	return f
}
