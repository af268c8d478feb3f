package envoyrls

import (
	"encoding/json"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
)

func TestMetadata(t *testing.T) {
	b := newBench(t, `
domain: d
descriptors:
  - {key: quota, quota_mode: true, metadata: {owner: a, domain: nobody}, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: plain, metadata: {list: [1, {x: true}]}, rate_limit: {unit: day, requests_per_unit: 9}}
`, Options{DynamicMetadata: true})
	req := request("quota=x x2", "plain=y", "other=z")
	req.HitsAddend = 3
	r, err := b.ShouldRateLimit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(r.DynamicMetadata)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{
		"domain": "d", "hitsAddend": 3, "owner": "a", "list": [1, {"x": true}], "quotaModeEnabled": true, "quotaModeViolations": [0],
		"descriptors": [{"entries": ["quota=x"], "hitsAddend": 2}, {"entries": ["plain=y"]}, {"entries": ["other=z"]}]
	}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %s", text)
	}
}
