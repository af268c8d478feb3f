package queue

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]map[string]Settings{
		"":            {},
		"mail=10/1s":  {"mail": {N: 10, Period: time.Second}},
		"sms = 1/1m;": {"sms": {N: 1, Period: time.Minute}},
		"mail=10/1s,capacity=5000,max_payload=100,visibility=1m,max_tries=2,backoff=2s,max_backoff=1h,max_dead=3,remember=1d; sms=1/1s": {
			"mail": {
				N: 10, Period: time.Second, Capacity: 5000, MaxPayload: 100, Visibility: time.Minute, MaxTries: 2,
				Backoff: 2 * time.Second, MaxBackoff: time.Hour, MaxDead: 3, Remember: 24 * time.Hour,
			},
			"sms": {N: 1, Period: time.Second},
		},
	} {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"mail":                             "write name=value",
		"mail=fast":                        `"fast" is not a rate`,
		"mail=token_bucket 10/1s":          "is not a rate",
		"mail=10/1s;mail=1/1s":             "is given twice",
		"mail=10/1s,capacity=0":            "capacity",
		"mail=10/1s,capacity=many":         "capacity",
		"mail=10/1s,visibility=5":          "visibility",
		"mail=10/1s,visibility=-1s":        "visibility",
		"mail=10/1s,capacty=5":             "did you mean capacity?",
		"mail=10/1s,colour=red":            "use capacity, max_payload",
		"mail=10/1s,capacity=999999999999": "apacity",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
