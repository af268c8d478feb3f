package envoyxds

import (
	"fmt"
	"strconv"

	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/envoyconfig"
)

// descriptorOf is the type of a resource.
var descriptorOf = (*configv3.RateLimitConfig)(nil).ProtoReflect().Descriptor()

// measure counts the messages in one that is not decoded yet.
func measure(data []byte, d protoreflect.MessageDescriptor, depth int, messages *int) error {
	if depth > MaxDepth {
		return fmt.Errorf("messages are nested more than %d deep; nest fewer descriptors", MaxDepth)
	}
	return eachField(data, func(number protowire.Number, value []byte) error {
		f := d.Fields().ByNumber(number)
		if f == nil || f.Message() == nil {
			return nil
		}
		if *messages++; *messages > MaxMessages {
			return fmt.Errorf("there are more than %d descriptors, limits and values in all; send fewer", MaxMessages)
		}
		return measure(value, f.Message(), depth+1, messages)
	})
}

// file makes a resource what a file would be: its fields have the same names there.
func (r *resource) file() (envoyconfig.File, error) {
	var config configv3.RateLimitConfig
	if err := proto.Unmarshal(r.value, &config); err != nil {
		return envoyconfig.File{}, err
	}
	name := config.Name
	config.Name = "" // which is of the resource
	return envoyconfig.File{Name: document.Clip(name, 200), Root: element(config.ProtoReflect())}, nil
}

// element makes a mapping of the fields of a message that are set.
func element(m protoreflect.Message) *document.Element {
	if s, ok := m.Interface().(*structpb.Struct); ok {
		return structElement(s)
	}
	e := &document.Element{Kind: document.Mapping}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		value := &document.Element{Kind: document.List}
		if f.IsList() {
			for i := range v.List().Len() {
				value.Items = append(value.Items, scalar(f, v.List().Get(i)))
			}
		} else {
			value = scalar(f, v)
		}
		e.Add(string(f.Name()), value)
		return true
	})
	return e
}

// scalar makes an element of one value.
func scalar(f protoreflect.FieldDescriptor, v protoreflect.Value) *document.Element {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return element(v.Message())
	case protoreflect.BoolKind:
		return document.NewTruth(v.Bool())
	case protoreflect.EnumKind:
		if known := f.Enum().Values().ByNumber(v.Enum()); known != nil {
			return document.NewText(string(known.Name()))
		}
		return document.NewText(strconv.Itoa(int(v.Enum())))
	case protoreflect.Uint32Kind:
		return document.NewInteger(int64(v.Uint()))
	}
	return document.NewText(v.String())
}

func structElement(s *structpb.Struct) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	for name, value := range s.GetFields() {
		e.Add(name, valueElement(value))
	}
	return e
}

func valueElement(v *structpb.Value) *document.Element {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return document.NewText(kind.StringValue)
	case *structpb.Value_NumberValue:
		return document.NewNumber(strconv.FormatFloat(kind.NumberValue, 'g', -1, 64))
	case *structpb.Value_BoolValue:
		return document.NewTruth(kind.BoolValue)
	case *structpb.Value_StructValue:
		return structElement(kind.StructValue)
	case *structpb.Value_ListValue:
		e := &document.Element{Kind: document.List}
		for _, item := range kind.ListValue.GetValues() {
			e.Items = append(e.Items, valueElement(item))
		}
		return e
	}
	return &document.Element{}
}
