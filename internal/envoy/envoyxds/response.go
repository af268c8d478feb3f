package envoyxds

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
)

// Bounds on a response, besides those of a configuration.
const (
	MaxBytes     = envoyconfig.MaxBytes
	MaxResources = envoyconfig.MaxFiles
	MaxMessages  = 4 * envoyconfig.MaxDescriptors // within the resources
	MaxDepth     = 64                             // of messages within each other
	maxVersion   = 1 << 10                        // bytes
)

// codec hands over responses as they came. They are decoded within bounds, and the parts
// that an answer needs even if the rest is out of them.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	data, err := proto.Marshal(v.(proto.Message))
	return mem.BufferSlice{mem.SliceBuffer(data)}, err
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// response is an envoy.service.discovery.v3.DiscoveryResponse.
type response struct {
	version, typeURL, nonce string
	resources               []resource
	beyond                  int // resources that are too many
}

// resource is one google.protobuf.Any.
type resource struct {
	typeURL string
	value   []byte
}

var errMalformed = errors.New("envoyxds: the response is not protobuf; check that the server speaks xDS")

// parse reads a response. Values are parts of the data. One of another type was not asked
// for, so that there is nothing to answer.
func parse(data []byte) (*response, error) {
	r := &response{}
	err := r.parse(data)
	switch {
	case err != nil:
	case !utf8.ValidString(r.version + r.nonce):
		err = errMalformed
	case r.typeURL != TypeURL:
		err = fmt.Errorf("envoyxds: the server sent resources of the type %.200q instead of %s", r.typeURL, TypeURL)
	}
	return r, err
}

func (r *response) parse(data []byte) error {
	return eachField(data, func(number protowire.Number, value []byte) error {
		switch number {
		case 1:
			r.version = string(value)
		case 2:
			if len(r.resources) == MaxResources {
				r.beyond++
				return nil
			}
			r.resources = append(r.resources, resource{})
			last := &r.resources[len(r.resources)-1]
			return eachField(value, func(number protowire.Number, value []byte) error {
				switch number {
				case 1:
					last.typeURL = string(value)
				case 2:
					last.value = value
				}
				return nil
			})
		case 4:
			r.typeURL = string(value)
		case 5:
			r.nonce = string(value)
		}
		return nil
	})
}

// eachField visits the fields of a message that have a length: texts and messages.
func eachField(data []byte, visit func(protowire.Number, []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errMalformed
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return errMalformed
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			if err := visit(number, value); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}

// check is an error for what is not worth to be decoded.
func (r *response) check() error {
	switch {
	case len(r.version) > maxVersion:
		return fmt.Errorf("envoyxds: version_info has %d bytes; the maximum is %d", len(r.version), maxVersion)
	case r.beyond > 0:
		return fmt.Errorf("envoyxds: %d resources exceed the maximum of %d; put the descriptors of several domains into one", len(r.resources)+r.beyond, MaxResources)
	}
	messages := 0
	for i, one := range r.resources {
		if one.typeURL != TypeURL {
			return fmt.Errorf("envoyxds: resources[%d] has the type %.200q; send %s", i, one.typeURL, TypeURL)
		}
		if err := measure(one.value, descriptorOf, 1, &messages); err != nil {
			return fmt.Errorf("envoyxds: resources[%d]: %w", i, err)
		}
	}
	return nil
}

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
