package httpapi

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/queue"
)

// leaseOne leases an item of a queue.
func (k *kept) leaseOne(t *testing.T, name string) WorkLease {
	t.Helper()
	var a LeaseAnswer
	k.call("POST /v1/queues/"+name+"/lease", `{}`).want(t, 200, &a)
	if len(a.Leases) != 1 {
		t.Fatalf("%+v", a)
	}
	return a.Leases[0]
}

func TestQueues(t *testing.T) {
	// Numbers begin at the time, in microseconds.
	first, second := begin.UnixMicro(), begin.UnixMicro()+1
	numbers := strings.NewReplacer("#1", fmt.Sprint(first), "#2", fmt.Sprint(second))
	eachStore(t, func(t *testing.T, k *kept) {
		says := func(what, body, want string) {
			t.Helper()
			k.says(t, what, numbers.Replace(body), numbers.Replace(want))
		}
		says("POST /v1/queues/mail/push", `{"payload":"to alice","id":"1"}`, `{"number":#1,"duplicate":false,"state":"ready","position":1,"wait_ms":0}`)
		says("POST /v1/queues/mail/push", `{"payload":"to bob"}`, `{"number":#2,"duplicate":false,"state":"ready","position":2,"wait_ms":100}`)
		says("POST /v1/queues/mail/push", `{"payload":"","id":"1"}`, `{"number":#1,"duplicate":true,"state":"ready","position":1,"wait_ms":0}`)
		says("GET /v1/queues/mail", "", `{"name":"mail","ready":2,"delayed":0,"leased":0,"capacity":3,"dead":0,"dropped":0,"oldest_ms":0,"wait_ms":0,`+
			`"terms":{"pace":"10/1s","max_payload":100,"visibility_ms":30000,"max_tries":2,"backoff_ms":1000,"max_backoff_ms":300000,"max_dead":1000,"remember_ms":3600000}}`)

		var a LeaseAnswer
		k.call("POST /v1/queues/mail/lease", `{"max":5,"ahead_ms":100}`).want(t, 200, &a)
		if len(a.Leases) != 2 || a.WaitMS == nil {
			t.Fatalf("%+v", a)
		}
		alice, bob := a.Leases[0], a.Leases[1]
		if alice.Number != first || alice.ID != "1" || *alice.Payload != "to alice" || alice.Tries != 1 || !alice.Pushed.Equal(begin) || alice.DelayMS != 0 || alice.ExpiresAfterMS != 30_000 {
			t.Errorf("the first is %+v", alice)
		}
		if bob.Number != second || bob.ID != "" || bob.DelayMS != 100 || bob.ExpiresAfterMS != 30_100 {
			t.Errorf("the second is %+v", bob)
		}
		says("POST /v1/queues/mail/ack", `{"token":"`+alice.Token+`"}`, `{"state":"done"}`)
		k.call("POST /v1/queues/mail/ack", `{"token":"`+alice.Token+`"}`).wantProblem(t, fault.LeaseLost)
		says("POST /v1/queues/mail/push", `{"payload":"","id":"1"}`, `{"number":0,"duplicate":true,"state":"done","position":0,"wait_ms":0}`)
		k.pass(time.Second)
		says("POST /v1/queues/mail/extend", `{"token":"`+bob.Token+`"}`, `{"state":"leased","expires_after_ms":30000}`)
		says("POST /v1/queues/mail/return", `{"token":"`+bob.Token+`"}`, `{"state":"ready"}`)
		bob = k.leaseOne(t, "mail")
		if bob.Tries != 1 {
			t.Errorf("what was returned was tried: %+v", bob)
		}
		says("POST /v1/queues/mail/nack", `{"token":"`+bob.Token+`","reason":"no such mailbox"}`, `{"state":"delayed","retry_after_ms":1000}`)
		says("POST /v1/queues/mail/lease", `{}`, `{"leases":[],"wait_ms":1000}`)
		k.pass(time.Second)
		bob = k.leaseOne(t, "mail")
		says("POST /v1/queues/mail/nack", `{"token":"`+bob.Token+`","reason":"still none"}`, `{"state":"dead"}`)
		says("POST /v1/queues/mail/lease", `{}`, `{"leases":[],"wait_ms":null}`)
		says("GET /v1/queues/mail/dead", "",
			`{"dead":[{"number":#2,"payload":"to bob","tries":2,"pushed":"2026-01-01T00:00:00.5Z","died":"2026-01-01T00:00:02.5Z","reason":"still none"}],"next":#2}`)
		says(fmt.Sprintf("GET /v1/queues/mail/dead?after=%d&limit=1", second), "", `{"dead":[],"next":#2}`)
		says("GET /v1/queues", "", `{"queues":[{"name":"mail","ready":0,"delayed":0,"leased":0,"capacity":3,"dead":1,"dropped":0,"oldest_ms":0,"wait_ms":0},`+
			`{"name":"slow","ready":0,"delayed":0,"leased":0,"capacity":1,"dead":0,"dropped":0,"oldest_ms":0,"wait_ms":0}]}`)
		says("POST /v1/queues/mail/requeue", `{"numbers":[#1,#2,3]}`, `{"requeued":1}`)
		k.pass(time.Second)
		again := k.leaseOne(t, "mail")
		if again.Tries != 1 || *again.Payload != "to bob" {
			t.Errorf("what was requeued is %+v", again)
		}
		says("POST /v1/queues/mail/nack", `{"token":"`+again.Token+`","bury":true}`, `{"state":"dead"}`)
		number := dump(t, NumbersRequest{Numbers: []int64{again.Number}})
		says("POST /v1/queues/mail/delete", number, `{"deleted":1}`)
		says("POST /v1/queues/mail/delete", number, `{"deleted":0}`)
	})
}

// Any bytes come back as they went: what is not text, in base64.
func TestPayloads(t *testing.T) {
	eachStore(t, func(t *testing.T, k *kept) {
		for _, payload := range []string{"", "日本 <&>\u2028\"\\\x00", "\xff\xfe", strings.Repeat("\x00", 100), strings.Repeat("\xff", 100)} {
			k.call("POST /v1/queues/mail/push", dump(t, map[string]string{"payload_base64": base64.StdEncoding.EncodeToString([]byte(payload))})).want(t, 202, nil)
			l := k.leaseOne(t, "mail")
			if l.Payload == nil {
				got, err := base64.StdEncoding.DecodeString(l.PayloadBase64)
				if err != nil || string(got) != payload {
					t.Errorf("%q comes back as %q, %v", payload, got, err)
				}
			} else if *l.Payload != payload || l.PayloadBase64 != "" {
				t.Errorf("%q comes back as %+v", payload, l)
			}
			k.call("POST /v1/queues/mail/ack", dump(t, LeaseToken{l.Token})).want(t, 200, nil)
			k.pass(time.Second)
		}
		// A payload that is allowed fits into a body, however it is written.
		k.call("POST /v1/queues/mail/push", `{"payload":"`+strings.Repeat(`\u0000`, 100)+`"}`).want(t, 202, nil)
		if l := k.leaseOne(t, "mail"); *l.Payload != strings.Repeat("\x00", 100) {
			t.Errorf("%+v", l)
		}
		k.call("POST /v1/queues/slow/push", `{"payload":"`+strings.Repeat(`\u0000`, queue.DefaultMaxPayload)+`","id":"`+strings.Repeat(`\u0000`, queue.MaxIDLen)+`"}`).want(t, 202, nil)
	})
}

func TestFullQueue(t *testing.T) {
	eachStore(t, func(t *testing.T, k *kept) {
		k.call("POST /v1/queues/slow/push", `{"payload":"1"}`).want(t, 202, nil)
		l := k.leaseOne(t, "slow")
		r := k.call("POST /v1/queues/slow/push", `{"payload":"2"}`)
		if r.wantProblem(t, fault.QueueFull); r.Header.Get("Retry-After") != "90" {
			t.Errorf("%v", r.Header)
		}
		k.call("POST /v1/queues/slow/nack", dump(t, NackRequest{LeaseToken: LeaseToken{l.Token}, Bury: true})).want(t, 200, nil)
		k.call("POST /v1/queues/slow/push", `{"payload":"2"}`).want(t, 202, nil)
		r = k.call("POST /v1/queues/slow/requeue", dump(t, NumbersRequest{Numbers: []int64{l.Number}}))
		if r.wantProblem(t, fault.QueueFull, "0 dead letters were requeued"); r.Header.Get("Retry-After") != "90" {
			t.Errorf("%v", r.Header)
		}
		for range 3 {
			k.call("POST /v1/queues/mail/push", `{"payload":""}`).want(t, 202, nil)
		}
		r = k.call("POST /v1/queues/mail/push", `{"payload":""}`)
		if r.wantProblem(t, fault.QueueFull); r.Header.Get("Retry-After") != "1" {
			t.Errorf("%v", r.Header)
		}
	})
}

func TestQueueProblems(t *testing.T) {
	k := keptInMemory(t, Options{})
	for _, r := range queueRoutes {
		if !strings.Contains(r.path, "{") {
			continue
		}
		for _, name := range []string{"none", "Mail", "%ff", "a%20b", strings.Repeat("x", 5000)} {
			k.call(r.method+" "+strings.ReplaceAll(r.path, "{queue}", name), `{}`).wantProblem(t, fault.NoQueue, "GET /v1/queues")
		}
	}
	const push, lease, dead, requeue = "POST /v1/queues/mail/push", "POST /v1/queues/mail/lease", "GET /v1/queues/mail/dead", "POST /v1/queues/mail/requeue"
	for _, c := range []struct{ what, body, field, words string }{
		{push, `{}`, "payload", "required"},
		{push, `{"payload":null}`, "payload", "required"},
		{push, `{"payload":{}}`, "payload", "send a string"},
		{push, `{"payload":"","payload_base64":""}`, "payload_base64", "one of them"},
		{push, `{"payload_base64":"a"}`, "payload_base64", "not valid base64"},
		{push, `{"payload_base64":"/x=="}`, "payload_base64", "not valid base64"}, // would come back as /w==
		{push, `{"payload_base64":"_-=="}`, "payload_base64", "not valid base64"},
		{push, `{"payload":"` + strings.Repeat("x", 101) + `"}`, "payload", "at most 100"},
		{push, `{"payload":"","id":"` + strings.Repeat("x", queue.MaxIDLen+1) + `"}`, "id", "at most 256"},
		{push, `{"payload":"","priority":1}`, "priority", "no field"},
		{lease, `{"max":-1}`, "max", "1 to 100"},
		{lease, `{"max":101}`, "max", "1 to 100"},
		{lease, `{"ahead_ms":-1}`, "ahead_ms", "up to 10000"},
		{lease, `{"ahead_ms":9223372036854775807}`, "ahead_ms", "up to 10000"},
		{lease, `{"wait_s":21}`, "wait_s", "up to 20"},
		{lease, `{"wait_s":-1}`, "wait_s", "up to 20"},
		{lease, `{"wait":1}`, "wait", "wait_s"},
		{"POST /v1/queues/mail/ack", `{}`, "token", "required"},
		{"POST /v1/queues/mail/nack", `{"reason":"x"}`, "token", "required"},
		{"POST /v1/queues/mail/extend", `{"token":1}`, "token", "send a string"},
		{"POST /v1/queues/mail/return", `{"token":""}`, "token", "required"},
		{"GET /v1/queues?name=mail", "", "name", "no parameter"},
		{"GET /v1/queues/mail?x=1", "", "x", "no parameter"},
		{dead + "?limit=0", "", "limit", "from 1 to 100"},
		{dead + "?limit=101", "", "limit", "from 1 to 100"},
		{dead + "?after=-1", "", "after", "from 0"},
		{dead + "?after=9007199254740992", "", "after", "from 0"},
		{requeue, `{}`, "numbers", "required"},
		{requeue, `{"numbers":[]}`, "numbers", "required"},
		{requeue, `{"numbers":[0]}`, "numbers", "not the number of an item"},
		{requeue, `{"numbers":["1"]}`, "numbers", "whole number"},
		{"POST /v1/queues/mail/delete", `{"numbers":[` + strings.Repeat("1,", queue.MaxBatch) + `1]}`, "numbers", "maximum of 100"},
	} {
		p := k.call(c.what, c.body).wantProblem(t, fault.BadField, c.words)
		if p.Field != c.field || strings.Contains(p.Detail, "queue:") || strings.Contains(p.Detail, "weir:") {
			t.Errorf("%s %s: %q in %q", c.what, c.body, p.Detail, p.Field)
		}
	}
	for _, token := range []string{"x", "1-" + strings.Repeat("0", 32), strings.Repeat("x", 1000), "-1-" + strings.Repeat("a", 32)} {
		for _, how := range []string{"ack", "nack", "extend", "return"} {
			r := k.call("POST /v1/queues/mail/"+how, dump(t, LeaseToken{token}))
			if r.wantProblem(t, fault.LeaseLost); strings.Contains(string(r.body), token) && len(token) > 1 {
				t.Errorf("the token is repeated: %s", r.body)
			}
		}
	}
	k.call(push, strings.Repeat(" ", 6*100+maxSmallBody+1)).wantProblem(t, fault.TooLarge)
	k.call("POST /v1/queues/mail/nack", strings.Repeat(" ", maxReasonBody+1)).wantProblem(t, fault.TooLarge)
}
