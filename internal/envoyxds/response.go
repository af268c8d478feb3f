package envoyxds

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/envoyconfig"
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
