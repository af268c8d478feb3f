package inbound

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// plan is what may be in a message of one type.
type plan struct {
	Bound
	name protoreflect.FullName
	at   []*plan // by the number of a field, if that is a message or a list of texts
}

// planOf makes the plan of a type.
func (g *Guard) planOf(d protoreflect.MessageDescriptor) *plan {
	return g.plan(d, map[protoreflect.FullName]*plan{})
}

func (g *Guard) plan(d protoreflect.MessageDescriptor, made map[protoreflect.FullName]*plan) *plan {
	if p := made[d.FullName()]; p != nil {
		return p
	}
	p := &plan{Bound: usual, name: d.FullName()}
	if b, ok := g.options.Bounds[p.name]; ok {
		p.Bound = b
	}
	made[p.name] = p
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		texts := f.IsList() && (f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind)
		if f.Message() == nil && !texts {
			continue
		}
		for len(p.at) <= int(f.Number()) {
			p.at = append(p.at, nil)
		}
		if texts {
			p.at[f.Number()] = text
		} else {
			p.at[f.Number()] = g.plan(f.Message(), made)
		}
	}
	return p
}

// text is what stands for the plan of a text.
var text = new(plan)

// maxDepth is how deep messages may be within each other.
const maxDepth = 16

// check counts the messages in a message that is not decoded yet. What is wrong with it
// otherwise is found by who decodes it.
func (p *plan) check(b []byte, depth int) error {
	_, err := p.count(b, depth)
	return err
}

func (p *plan) count(b []byte, depth int) (all int, err error) {
	parts := 0
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return all, nil
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return all, nil
		}
		value := b[:n]
		b = b[n:]
		if int(number) >= len(p.at) || p.at[number] == nil {
			continue
		}
		if parts++; parts > p.Parts {
			return all, status.Errorf(codes.InvalidArgument, "weir: a %s has more than %d parts; send fewer", p.name, p.Parts)
		}
		all++
		if inner := p.at[number]; kind == protowire.BytesType && inner != text {
			if depth == maxDepth {
				return all, status.Errorf(codes.InvalidArgument, "weir: messages are nested deeper than %d levels; send less", maxDepth)
			}
			content, _ := protowire.ConsumeBytes(value)
			below, err := inner.count(content, depth+1)
			if all += below; err != nil {
				return all, err
			}
		}
		if p.All > 0 && all > p.All {
			return all, status.Errorf(codes.InvalidArgument, "weir: a %s has more than %d parts in all; send fewer", p.name, p.All)
		}
	}
	return all, nil
}
