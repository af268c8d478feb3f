package envoy

import "testing"

// The examples are read without a word.
func TestExamples(t *testing.T) {
	d, err := Open("../examples/envoy/config", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := d.Warnings(); len(w) > 0 {
		t.Error(w)
	}
	for domain, list := range map[string]string{"edge": "path=/login,remote_address=203.0.113.7", "api": "user=alice,export=x"} {
		if d.Config().Domain(domain).Find(query(list)) == nil {
			t.Errorf("%s leads nowhere in %s", list, domain)
		}
	}
}
