package frame

import (
	"reflect"
	"testing"
)

// Priorities merge as if one instance had counted them, and survive being written.
func TestPriorities(t *testing.T) {
	var sum Frame
	for i := range int64(5) {
		f := Frame{Requests: Counts{Allowed: 10 + i, Denied: 7, Blocked: 1}}
		f.Priorities.Critical = Counts{Allowed: i}
		f.Priorities.High = Counts{Blocked: 1}
		f.Priorities.Low = Counts{Allowed: 1, Denied: 2 * i}
		read, err := Decode(f.Append(nil))
		if err != nil || !reflect.DeepEqual(read, &f) {
			t.Fatalf("%+v, %v, want %+v", read, err, &f)
		}
		sum.Merge(read)
	}
	want := Priorities{Critical: Counts{Allowed: 10}, High: Counts{Blocked: 5}, Low: Counts{Allowed: 5, Denied: 20}}
	if sum.Priorities != want {
		t.Errorf("%+v, want %+v", sum.Priorities, want)
	}
	if got, want := sum.Priorities.Normal(sum.Requests), (Counts{Allowed: 45, Denied: 15}); got != want || sum.Requests.Allowed != 60 {
		t.Errorf("normal: %+v, want %+v; all: %+v", got, want, sum.Requests)
	}
	if got := sum.Priorities.Normal(Counts{Denied: 19}); got != (Counts{}) {
		t.Errorf("less than nothing: %+v", got)
	}
	if f := (&Frame{Priorities: want}); f.Empty() || f.Weight() != 40 {
		t.Errorf("priorities weigh %d", f.Weight())
	}
}

// A frame in which all requests are normal is written as before.
func TestPriorityVersion(t *testing.T) {
	f := Frame{Requests: Counts{Allowed: 1}}
	if v := f.Append(nil)[0]; v != 2 {
		t.Error(v)
	}
	f.Priorities.Low.Denied = 1
	if v := f.Append(nil)[0]; v != 7 {
		t.Error(v)
	}
}
