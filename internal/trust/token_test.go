package trust

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	alice = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
	bob   = "0123456789abcdef"
)

func TestParse(t *testing.T) {
	source := "\ufeff# people\r\n\r\nalice admin " + alice + "\r\n  # and machines\n\tci.bot-1_x   read\t" + bob
	l, err := ParseTokens([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var holders []Holder
	for _, e := range l.entries {
		holders = append(holders, e.holder)
	}
	if want := []Holder{{Name: "alice", Rights: Admin}, {Name: "ci.bot-1_x", Rights: Read}}; !slices.Equal(holders, want) {
		t.Errorf("the holders are %v, want %v", holders, want)
	}
	for _, c := range []struct {
		bearer string
		want   Holder
		found  bool
	}{
		{alice, Holder{Name: "alice", Rights: Admin}, true},
		{bob, Holder{Name: "ci.bot-1_x", Rights: Read}, true},
		{"", Holder{}, false},
		{alice + "0", Holder{}, false},
		{alice[1:], Holder{}, false},
		{strings.ToUpper(alice), Holder{}, false},
		{" " + bob, Holder{}, false},
		{strings.Repeat("x", 1<<20), Holder{}, false},
	} {
		if got, found := l.Find(c.bearer); got != c.want || found != c.found {
			t.Errorf("Find(%.40q) = %v, %v, want %v, %v", c.bearer, got, found, c.want, c.found)
		}
	}
}

func TestOneWordIsAnAdmin(t *testing.T) {
	for _, source := range []string{alice, alice + "\n", "# made on Monday\n\n" + alice + "\n\n"} {
		l, err := ParseTokens([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		if got, found := l.Find(alice); !found || got != (Holder{Name: "admin", Rights: Admin}) {
			t.Errorf("Find = %v, %v", got, found)
		}
	}
}

func TestNobodyIsOnNoList(t *testing.T) {
	var l *List
	if got, found := l.Find(alice); found {
		t.Errorf("found %v", got)
	}
}

func TestParseErrors(t *testing.T) {
	long := strings.Repeat("x", maxToken+1)
	for _, c := range []struct{ name, source, want string }{
		{"nothing", "", "token: there is no token; make one with: openssl rand -hex 32"},
		{"comments only", "# alice admin " + alice, "there is no token"},
		{"short", "alice admin 0123456789abcde", "line 1: the token has fewer than 16 characters and could be guessed; make one with: openssl rand -hex 32"},
		{"one short word", "secret", "fewer than 16 characters"},
		{"long", "alice admin " + long, "more than 512 characters"},
		{"not ASCII", "alice admin 0123456789abcdé0123", "characters that are not allowed in an HTTP header"},
		{"control character", "alice admin 0123456789abcdef\x7f", "characters that are not allowed in an HTTP header"},
		{"two words", "\nalice " + alice, "line 2: fewer than three words; write name, rights (read, use, admin, check, charge, clients) and token"},
		{"four words", "alice admin " + alice + " " + bob, "line 1: word 3 is not a right; write read, use, admin, check, charge"},
		{"one word in several lines", alice + "\nbob read " + bob, "line 1: fewer than three words"},
		{"no scope", "alice root " + alice, "line 1: word 2 is not a right; write read, use, admin, check, charge"},
		{"a right with a slip", "alice chekc " + alice, `line 1: word 2 is not a right; did you mean "check"?`},
		{"patterns of nothing", "alice rules=a* " + alice, "word 2 has no meaning; patterns are rules=… and clients=…, behind check or charge"},
		{"patterns of a reader", "alice read rules=a* " + alice, "word 3 has no meaning"},
		{"unknown patterns", "alice check keys=a* " + alice, "word 3 has no meaning"},
		{"patterns twice", "alice check rules=a rules=b " + alice, "word 4 repeats patterns"},
		{"no patterns", "alice check rules= " + alice, "word 3 has an empty pattern"},
		{"an empty pattern", "alice check clients=user:a,,user:b " + alice, "word 3 has an empty pattern"},
		{"many patterns", "alice check rules=a" + strings.Repeat(",b", maxPatterns) + " " + alice, "more than 100 patterns"},
		{"patterns without effect", "alice check rules=a charge " + alice, "another right of the line includes the one with patterns"},
		{"patterns of an admin", "alice admin check rules=a " + alice, "another right of the line includes"},
		{"the token forgotten", "alice check clients=user:a-name-that-is-long", "there is no token behind the patterns"},
		{"columns mixed up", "alice " + alice + " admin", "word 2 is not a right"},
		{"the token first", alice + strings.Repeat("x", maxName) + " admin alice", "invalid name"},
		{"a name with a slash", "a/b admin " + alice, "invalid name"},
		{"a name twice", "alice admin " + alice + "\n\nalice read " + bob, "line 3: same name as line 1"},
		{"a token twice", "alice admin " + alice + "\nbob read " + alice, "line 2: same token as line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := ParseTokens([]byte(c.source))
			if err == nil || l != nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			for _, secret := range []string{alice, bob, "secret", "0123456789abcd", "xxxx", "alice"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error repeats %q: %v", secret, err)
				}
			}
		})
	}
}

func TestBoundOnTokens(t *testing.T) {
	var b strings.Builder
	for i := range maxTokens {
		fmt.Fprintf(&b, "n%d read token-number-%08d\n", i, i)
	}
	l, err := ParseTokens([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 1, maxTokens - 1} {
		if got, _ := l.Find(fmt.Sprintf("token-number-%08d", i)); got.Name != fmt.Sprintf("n%d", i) {
			t.Errorf("token %d belongs to %v", i, got)
		}
	}
	b.WriteString("more read one-token-too-many")
	if _, err := ParseTokens([]byte(b.String())); err == nil || !strings.Contains(err.Error(), "more than 1000 tokens") {
		t.Errorf("error %v", err)
	}
}

// Whatever the list and the bearer, Find says what looking for the text would say.
func TestFindIsALookup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.StringMatching(`[!-~]{16,40}`)
		tokens := rapid.SliceOfNDistinct(token, 1, 8, rapid.ID[string]).Draw(t, "tokens")
		var b strings.Builder
		for i, secret := range tokens {
			fmt.Fprintf(&b, "n%d %s %s\n", i, words[i%len(words)].name, secret)
		}
		l, err := ParseTokens([]byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		bearer := rapid.OneOf(token, rapid.SampledFrom(tokens)).Draw(t, "bearer")
		got, found := l.Find(bearer)
		i := slices.Index(tokens, bearer)
		if found != (i >= 0) {
			t.Fatalf("found %v, is at %d", found, i)
		}
		if found && got != (Holder{Name: fmt.Sprintf("n%d", i), Rights: words[i%len(words)].right}) {
			t.Fatalf("Find = %v, is at %d", got, i)
		}
	})
}

func TestParseNeverRepeatsItsSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[0-9A-Z]{6,70}`), 1, 5).Draw(t, "words")
		_, err := ParseTokens([]byte(strings.Join(words, " ") + "\n# end"))
		for _, word := range words {
			if err != nil && strings.Contains(err.Error(), word) {
				t.Fatalf("%v repeats %q", err, word)
			}
		}
	})
}

func TestRights(t *testing.T) {
	for _, c := range []struct {
		line, names, scope string
		rights             Rights
	}{
		{"read", "read", "read", Read},
		{"use", "use", "use", Use},
		{"use read", "use", "use", Use},
		{"admin", "admin", "admin", Admin},
		{"check", "check", "", Check},
		{"charge", "charge", "", Charge},
		{"check charge", "charge", "", Charge},
		{"use check", "use, check", "use", Use | Check},
		{"read charge rules=a", "read, charge", "read", Read | Charge},
		{"use read check charge", "use, charge", "use", Use | Charge},
		{"clients", "clients", "", Clients},
		{"read clients", "read, clients", "read", Read | Clients},
	} {
		got, _ := list(t, "alice "+c.line+" "+alice).Find(alice)
		if got.Rights != c.rights || got.Rights.String() != c.names || got.Rights.Scope() != c.scope {
			t.Errorf("%s is %v with the scope %s", c.line, got.Rights, got.Rights.Scope())
		}
	}
	if Use.Has(Admin) || Use.Has(Check) || Read.Has(Use) || Charge.Has(Read) || !Charge.Has(Check) || !Admin.Has(Charge|Use|Clients) || !Read.Has(Look) || Use.Has(Clients) || Clients.Has(Read) {
		t.Error("some rights include others that they should not, or lack some")
	}
}

func TestPermit(t *testing.T) {
	for _, c := range []struct {
		line      string
		right     Rights
		rule, key string
		want      bool
	}{
		{"check", Check, "login", "user:alice", true},
		{"check rules=login", Check, "login", "user:alice", true},
		{"check rules=login", Check, "logins", "user:alice", false},
		{"check rules=login-*,signup", Check, "login-ip", "user:alice", true},
		{"check rules=login-*,signup", Check, "signup", "user:alice", true},
		{"check rules=login-*,signup", Check, "login", "user:alice", false},
		{"check clients=user:eu-*", Check, "login", "user:eu-1", true},
		{"check clients=user:eu-*", Check, "login", "user:us-1", false},
		{"check clients=user:eu-*", Check, "login", "ip:192.0.2.1|user:eu-1", false},
		{"check clients=user:eu-*,ip:*", Check, "login", "ip:192.0.2.1|user:eu-1", true},
		{"check clients=ip:*", Check, "login", "ip:192.0.2.1|user:victim", false},
		{"check clients=ip:*", Check, "login", "user:victim|ip:192.0.2.1", false},
		{"check clients=user:a*", Check, "login", `user:a\|user:victim`, true}, // a user with a bar in the name
		{"check clients=user:a*", Check, "login", `user:a\\|user:victim`, false},
		{"check clients=user:*", Check, "all", "global", false},
		{"check clients=user:*,global", Check, "all", "global", true},
		{"check clients=user:*", Check, "login", `\sha256:00`, false},
		{"check rules=login clients=user:a*b*c", Check, "login", "user:a-b-c", true},
		{"check rules=login clients=user:a*b*c", Check, "login", "user:a-c-b", false},
		{"check rules=login clients=user:a*b*c", Check, "other", "user:abc", false},
		{"check rules=login clients=user:ab*b", Check, "login", "user:ab", false},
		{"check charge rules=llm", Check, "login", "user:alice", true},
		{"check charge rules=llm", Charge, "login", "user:alice", false},
		{"check charge rules=llm", Charge, "llm", "user:alice", true},
		{"check rules=login charge rules=llm", Check, "login", "user:alice", true},
		{"check rules=login charge rules=llm", Check, "llm", "user:alice", true},
		{"check rules=login charge rules=llm", Charge, "login", "user:alice", false},
		{"check rules=a clients=user:a check rules=b clients=user:b", Check, "a", "user:b", false},
		{"check rules=a clients=user:a check rules=b clients=user:b", Check, "b", "user:b", true},
	} {
		h, _ := list(t, "alice "+c.line+" "+alice).Find(alice)
		permit := h.Permit(c.right)
		if got := permit == nil || permit(c.rule, c.key); got != c.want {
			t.Errorf("%s: %v of %s for %s is %v", c.line, c.right, c.rule, c.key, got)
		}
	}
	for _, free := range []string{"check", "charge", "admin", "use check"} {
		if h, _ := list(t, "alice "+free+" "+alice).Find(alice); h.Permit(Check) != nil {
			t.Errorf("%s is bounded", free)
		}
	}
}

// Patterns match what the standard library says of them.
func TestMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{0,6}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "text")
		if want, _ := path.Match(pattern, text); matches(pattern, text) != want {
			t.Fatalf("%q matches %q: %v", pattern, text, !want)
		}
	})
}
