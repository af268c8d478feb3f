package bearer

import (
	"fmt"
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
	l, err := Parse([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var holders []Holder
	for _, e := range l.entries {
		holders = append(holders, e.holder)
	}
	if want := []Holder{{"alice", Admin}, {"ci.bot-1_x", Read}}; !slices.Equal(holders, want) {
		t.Errorf("the holders are %v, want %v", holders, want)
	}
	for _, c := range []struct {
		bearer string
		want   Holder
		found  bool
	}{
		{alice, Holder{"alice", Admin}, true},
		{bob, Holder{"ci.bot-1_x", Read}, true},
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
		l, err := Parse([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		if got, found := l.Find(alice); !found || got != (Holder{"admin", Admin}) {
			t.Errorf("Find = %v, %v", got, found)
		}
	}
}

func TestNobodyIsOnNoList(t *testing.T) {
	var l *List
	if got, found := l.Find(alice); found {
		t.Errorf("found %v", got)
	}
	if !l.Equal(nil) || l.Equal(&List{}) {
		t.Error("a list that is nil has somebody on it")
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
		{"two words", "\nalice " + alice, "line 2: not three words; write name, scope (read, use or admin) and token"},
		{"four words", "alice admin " + alice + " " + bob, "line 1: not three words"},
		{"one word in several lines", alice + "\nbob read " + bob, "line 1: not three words"},
		{"no scope", "alice root " + alice, "the second word is not a scope; write read, use or admin"},
		{"columns mixed up", "alice " + alice + " admin", "the second word is not a scope"},
		{"the token first", alice + strings.Repeat("x", maxName) + " admin alice", "invalid name"},
		{"a name with a slash", "a/b admin " + alice, "invalid name"},
		{"a name twice", "alice admin " + alice + "\n\nalice read " + bob, "line 3: same name as line 1"},
		{"a token twice", "alice admin " + alice + "\nbob read " + alice, "line 2: same token as line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Parse([]byte(c.source))
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
	l, err := Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 1, maxTokens - 1} {
		if got, _ := l.Find(fmt.Sprintf("token-number-%08d", i)); got.Name != fmt.Sprintf("n%d", i) {
			t.Errorf("token %d belongs to %v", i, got)
		}
	}
	b.WriteString("more read one-token-too-many")
	if _, err := Parse([]byte(b.String())); err == nil || !strings.Contains(err.Error(), "more than 1000 tokens") {
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
			fmt.Fprintf(&b, "n%d %s %s\n", i, scopes[i%3], secret)
		}
		l, err := Parse([]byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		bearer := rapid.OneOf(token, rapid.SampledFrom(tokens)).Draw(t, "bearer")
		got, found := l.Find(bearer)
		i := slices.Index(tokens, bearer)
		if found != (i >= 0) {
			t.Fatalf("found %v, is at %d", found, i)
		}
		if found && got != (Holder{fmt.Sprintf("n%d", i), Scope(i % 3)}) {
			t.Fatalf("Find = %v, is at %d", got, i)
		}
	})
}

func TestParseNeverRepeatsItsSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[0-9A-Z]{6,70}`), 1, 5).Draw(t, "words")
		_, err := Parse([]byte(strings.Join(words, " ") + "\n# end"))
		for _, word := range words {
			if err != nil && strings.Contains(err.Error(), word) {
				t.Fatalf("%v repeats %q", err, word)
			}
		}
	})
}

func TestScopeNames(t *testing.T) {
	if Read.String() != "read" || Use.String() != "use" || Admin.String() != "admin" || Scope(9).String() != "scope 9" {
		t.Error(Read, Admin, Scope(9))
	}
}
