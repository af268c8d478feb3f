package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

const (
	haInstances = 3
	haCallers   = 6
	haUsers     = 30 // in each phase, other ones
	haLimit     = 40 // for each user
	haShare     = (haLimit + haInstances - 1) / haInstances
)

// ha is three weirs behind one load balancer, on one Redis.
type ha struct {
	t         *testing.T
	dir       string
	url       string // of the load balancer
	store     string
	addresses []string
	weirs     []*process
}

// haproxy is the load balancer of examples/proxies/ha/haproxy.cfg.
type haproxy struct {
	*ha
	admin string // its socket
}

var haNames = [haInstances]string{"one", "two", "three"}

// startHA starts the weirs. A check may take seconds, though fewer than the load balancer waits, so that a
// busy machine does not look like an outage; a Redis that was killed is felt at once.
func startHA(t *testing.T, store string) *ha {
	public := freeAddress(t)
	h := &ha{t: t, dir: t.TempDir(), url: "http://" + public, store: store + "?timeout=4s"}
	write(t, h.dir, "rules.yaml", fmt.Sprintf("rules: [{id: api, key: user, algorithm: sliding_log, limit: %d/1h, on_failure: local}]", haLimit))
	for i := range haInstances {
		h.addresses = append(h.addresses, freeAddress(t))
		h.weirs = append(h.weirs, h.startWeir(i))
	}
	return h
}

// startWeir is also for one that comes back.
func (h *ha) startWeir(i int) *process {
	return start(h.t, h.dir, "serve", "--http", h.addresses[i], "--rules", "rules.yaml", "--instances", fmt.Sprint(haInstances),
		"--trusted-proxies", "127.0.0.1", "--user-header", "X-User", "--store", h.store)
}

// replaced are the addresses of the examples, and those that they are here.
func (h *ha) replaced() []string {
	return []string{"10.0.0.11:8080", h.addresses[0], "10.0.0.12:8080", h.addresses[1], "10.0.0.13:8080", h.addresses[2], "127.0.0.1:8080", h.public()}
}

func (h *ha) public() string { return strings.TrimPrefix(h.url, "http://") }

func startHAWithHAProxy(t *testing.T, store string) *haproxy {
	h := &haproxy{ha: startHA(t, store)}
	h.admin = filepath.Join(h.dir, "admin.sock")
	away := adopt(t, h.dir, "ha/unavailable.http")
	file := adopt(t, h.dir, "ha/haproxy.cfg", append(h.replaced(),
		"/run/haproxy/admin.sock", h.admin, "/run/haproxy/checks.sock", filepath.Join(h.dir, "checks.sock"), "/etc/haproxy/unavailable.http", away,
		"inter 500ms fall 2", "inter 500ms fall 20")...) // a weir that stands still for a second is not gone
	run(t, h.dir, program(t, "haproxy"), []string{"-db", "-f", file}, []string{h.public(), h.admin})
	return h
}

// tell gives HAProxy a command, and returns the answer.
func (h *haproxy) tell(command string) string {
	h.t.Helper()
	c, err := net.Dial("unix", h.admin)
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, command+"\n")
	text, err := io.ReadAll(c)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

// stat is what HAProxy says of a server: the fields of "show stat" by name.
func (h *haproxy) stat(name string) map[string]string {
	lines := strings.Split(strings.TrimPrefix(h.tell("show stat"), "# "), "\n")
	names := strings.Split(lines[0], ",")
	for _, line := range lines[1:] {
		fields := strings.Split(line, ",")
		if len(fields) == len(names) && fields[0] == "checks" && fields[1] == name {
			all := map[string]string{}
			for i, name := range names {
				all[name] = fields[i]
			}
			return all
		}
	}
	h.t.Fatalf("HAProxy does not know %s", name)
	return nil
}

func (h *haproxy) waitUp(i int) {
	waitFor(h.t, haNames[i]+" up", func() bool { return h.stat(haNames[i])["status"] == "UP" })
}

// standing is how a user fared in a phase.
type standing struct {
	stored int  // allowed by Redis
	local  int  // allowed while Redis was unavailable
	away   int  // allowed by the load balancer, in place of a weir that was lost
	spent  bool // denied by Redis after the trouble
}

// load is what all callers see in a phase.
type load struct {
	mu       sync.Mutex
	users    [haUsers]standing
	asked    int
	allowed  int
	degraded int
	ended    atomic.Bool // a weir has
	astray   int         // calls that began after that, and were lost with it
	longest  time.Duration
	faults   []string
}

// note takes down an answer.
func (l *load) note(user int, a answer, err error, took time.Duration, over, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	l.longest = max(l.longest, took)
	if err != nil || a.Status != http.StatusOK {
		if l.faults = append(l.faults, fmt.Sprintf("%d %v %.200s", a.Status, err, a.Text)); len(l.faults) > 20 {
			l.faults = l.faults[:20]
		}
		return
	}
	u, away := &l.users[user], a.Header.Get("X-Weir-Unavailable") != ""
	if a.Degraded && !away {
		l.degraded++
	}
	switch {
	case a.Allowed && away:
		if u.away++; ended {
			l.astray++
		}
	case a.Allowed && a.Degraded:
		u.local++
	case a.Allowed:
		u.stored++
	case !a.Degraded && over:
		u.spent = true
	}
	if a.Allowed {
		l.allowed++
	}
}

// phase lets callers ask for users of its own, makes trouble when a third of what they
// may have is used, and goes on until Redis has denied every user after it.
func (h *ha) phase(name string, trouble func(l *load)) *load {
	h.t.Helper()
	l := &load{}
	var over, stop atomic.Bool
	var next atomic.Int64
	var wg sync.WaitGroup
	for range haCallers {
		c := client(h.t)
		wg.Go(func() {
			for !stop.Load() {
				user := int(next.Add(1) % haUsers)
				late, ended := over.Load(), l.ended.Load() // what was asked before says nothing of the time after
				begin := time.Now()
				a, err := try(c, "POST", h.url+"/v1/check", fmt.Sprintf(`{"user": "%s-%d"}`, name, user))
				l.note(user, a, err, time.Since(begin), late, ended)
				time.Sleep(time.Millisecond) // the machine is needed for others, too
			}
		})
	}
	holds := func(f func() bool) func() bool {
		return func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return f()
		}
	}
	waitFor(h.t, "traffic", holds(func() bool { return l.allowed > haUsers*haLimit/3 }))
	trouble(l)
	over.Store(true)
	waitFor(h.t, "the last denial", holds(func() bool {
		for i := range l.users {
			if !l.users[i].spent {
				return false
			}
		}
		return true
	}))
	stop.Store(true)
	wg.Wait()
	for _, fault := range l.faults {
		h.t.Errorf("%s: a client saw %s", name, fault)
	}
	stored, local, away := l.sum()
	h.t.Logf("%-8s %5d checks; of %d × %d, %d allowed by Redis, %d without it, %d for a lost weir; %d degraded; the longest took %v",
		name, l.asked, haUsers, haLimit, stored, local, away, l.degraded, l.longest.Round(time.Millisecond))
	return l
}

func (l *load) sum() (stored, local, away int) {
	for _, u := range l.users {
		stored, local, away = stored+u.stored, local+u.local, away+u.away
	}
	return stored, local, away
}

// exact checks that every user got exactly the limit, from Redis, and no request
// failed.
func (l *load) exact(t *testing.T, name string) {
	for i, u := range l.users {
		if u.stored != haLimit || u.local != 0 || u.away != 0 {
			t.Errorf("%s: user %d got %+v, want %d", name, i, u, haLimit)
		}
	}
}

// sentOnce lets a weir stand still: the check that it was sent is answered by the load balancer,
// and not sent to another, where it would be charged a second time. It returns the number of checks.
func (h *ha) sentOnce(i int, method, path, body string, header ...string) (asked int) {
	h.t.Helper()
	still := h.weirs[i].cmd.Process
	still.Signal(syscall.SIGSTOP)
	defer still.Signal(syscall.SIGCONT)
	waitFor(h.t, "standstill", func() bool { return stopped(still.Pid) })
	for asked = 1; asked <= 4*haInstances; asked++ { // in turn, or nearly so
		a := ask(h.t, client(h.t), method, h.url+path, body, header...)
		if a.Status != http.StatusOK {
			h.t.Errorf("%s: %d %s", path, a.Status, a.Text)
		}
		if a.Header.Get("X-Weir-Unavailable") != "" {
			return asked
		}
	}
	h.t.Errorf("%s: a weir stands still, and another one answered for it", path)
	return asked
}

// lostOnly checks that charges are missing only for calls that the load balancer answered: one that was
// sent twice would be charged twice.
func (l *load) lostOnly(t *testing.T, name string) {
	t.Helper()
	stored, _, away := l.sum()
	if l.astray > 0 {
		t.Errorf("%s: %d of %d calls were lost with a weir that had ended before", name, l.astray, away)
	}
	if missing := haUsers*haLimit - stored; missing > away {
		t.Errorf("%s: %d charges were lost, with %d calls", name, missing, away)
	}
	for i, u := range l.users {
		if u.stored > haLimit || u.local != 0 {
			t.Errorf("%s: user %d got %+v, want at most %d", name, i, u, haLimit)
		}
	}
}

// Through the loss of a weir, the loss of a Redis master and the replacement of all
// weirs, no client sees an error, and none gets more than is promised.
func TestHighAvailability(t *testing.T) {
	cluster := testredis.StartSteadyCluster(t)
	h := startHAWithHAProxy(t, "redis+cluster://"+strings.Join(cluster.Addrs, ","))
	for i := range h.weirs {
		h.waitUp(i)
	}
	h.phase("quiet", func(*load) {}).exact(t, "quiet")
	for _, name := range haNames {
		if n := h.stat(name)["stot"]; n == "0" {
			t.Errorf("%s was asked nothing", name)
		}
	}

	asked := h.sentOnce(2, "POST", "/v1/check", `{"user": "still"}`)
	h.waitUp(2)
	if a := ask(t, client(t), "POST", h.url+"/v1/check", `{"user": "still", "peek": true}`); a.Remaining < int64(haLimit-asked) {
		t.Errorf("%d checks have left %d of %d", asked, a.Remaining, haLimit)
	}

	// A weir dies. It is unknown whether the calls that it has were charged; HAProxy allows them. While it
	// dies, the system accepts connections for it; after that, no call is lost.
	l := h.phase("weir", func(l *load) {
		h.weirs[1].kill()
		l.ended.Store(true)
		waitFor(t, "two down", func() bool { return h.stat("two")["status"] == "DOWN" })
	})
	l.lostOnly(t, "weir")
	h.weirs[1] = h.startWeir(1)
	h.waitUp(1)

	// A Redis master dies. Its users go on with a share at each weir, and what it had
	// not yet told its replica is forgotten.
	slot := cluster.SlotOf("{user:redis-0}")
	cluster.SetNodeTimeout(time.Second)
	l = h.phase("redis", func(*load) {
		master := cluster.MasterOf(slot)
		master.Kill()
		cluster.WaitForMaster(slot, master)
	})
	if l.degraded == 0 {
		t.Error("no answer was degraded while Redis was unavailable")
	}
	for i, u := range l.users {
		if u.stored > 2*haLimit || u.local > haInstances*haShare || u.away != 0 {
			t.Errorf("user %d got %+v, want at most %d, %d and 0", i, u, 2*haLimit, haInstances*haShare)
		}
	}

	// All weirs are replaced, one after the other.
	cluster.SetNodeTimeout(time.Minute)
	h.phase("roll", func(*load) {
		for i, name := range haNames {
			h.tell("set server checks/" + name + " state drain")
			// A call that was given to it just before is not counted yet, so it has to
			// stay idle for some time.
			idle := 0
			waitFor(t, name+" idle", func() bool {
				if idle++; h.stat(name)["scur"] != "0" {
					idle = 0
				}
				return idle == 30
			})
			if code := h.weirs[i].stop(t); code != 0 {
				t.Errorf("%s ended with %d", name, code)
			}
			h.weirs[i] = h.startWeir(i)
			h.tell("set server checks/" + name + " state ready")
			h.waitUp(i)
		}
	}).exact(t, "roll")
}
