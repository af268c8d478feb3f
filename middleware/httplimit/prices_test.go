package httplimit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf16"
)

// understood is what a program makes of a request to a language model.
type understood struct {
	Model        string
	Text, Max, N int64
}

// price is what a request is worth under the rule of TestPrices. A request without a bound may have a long
// answer; the rule says for how much.
func (u understood) price() int64 {
	weight, output := int64(1), u.Max
	if u.Model == "dear" {
		weight = 100
	}
	if output == 0 {
		output = 1000
	}
	return weight * ((u.Text+3)/4 + output*u.N)
}

// hostile are requests that try to be cheap.
type hostile struct {
	Path     string `json:"path"`
	Encoding string `json:"encoding"`
	Type     string `json:"type"`
	Body     []byte `json:"body"`

	allowed bool // they try nothing
}

func hostileRequests() map[string]hostile {
	const chatPath = "/v1/chat/completions"
	long := strings.Repeat("so many words ", 1000)
	plain := fmt.Sprintf(`{"model":"dear","messages":[{"content":"%s"}],"max_tokens":50000}`, long)
	all := map[string]hostile{
		"plain":             {Path: chatPath, Body: []byte(plain), allowed: true},
		"plain, spaced":     {Path: chatPath, Body: []byte(" \n" + strings.ReplaceAll(plain, ":", " : ")), allowed: true},
		"plain, cheap":      {Path: chatPath, Body: []byte(`{"model":"cheap","messages":[{"content":"x"}],"max_tokens":1}`), allowed: true},
		"plain, Azure":      {Path: "/openai/deployments/dear/chat/completions", Body: []byte(`{"model":"cheap","messages":[{"content":"x"}]}`), allowed: true},
		"plain, Gemini":     {Path: "/v1/models/dear:generateContent", Body: []byte(`{"messages":[{"content":"x"}]}`), allowed: true},
		"path, nginx":       {Path: "/v1/deployments/cheap/..%2f..%2fchat/completions", Body: []byte(plain)},
		"path, Windows":     {Path: `/v1/deployments/cheap/..%5c..%5cchat/completions`, Body: []byte(plain)},
		"path, dots":        {Path: "/v1/deployments/cheap/../../chat/completions", Body: []byte(plain)},
		"path, Tomcat":      {Path: "/v1/deployments/cheap/..;/..;/chat/completions", Body: []byte(plain)},
		"path, Gemini":      {Path: "/v1/models/cheap:generateContent%2f..%2fdear:generateContent", Body: []byte(plain)},
		"path, in capitals": {Path: "/openai/DEPLOYMENTS/dear/chat/completions", Body: []byte(`{"model":"cheap","messages":[{"content":"x"}]}`)},
		"path, escaped":     {Path: "/openai/deployments/d%65ar/chat/completions", Body: []byte(`{"model":"cheap","messages":[{"content":"x"}]}`)},
		"gzip":              {Path: chatPath, Encoding: "gzip", Body: zipped(plain)},
		"UTF-16 by type":    {Path: chatPath, Type: "application/json; charset=utf-16le", Body: []byte(wide(plain))},
		"UTF-7 by type":     {Path: chatPath, Type: "application/json; charset=utf-7", Body: []byte(plain)},
		"UTF-8, mark":       {Path: chatPath, Body: []byte("\ufeff" + plain)},
		"UTF-16":            {Path: chatPath, Body: []byte(wide(plain))},
		"UTF-16, mark":      {Path: chatPath, Body: []byte(wide("\ufeff" + plain))},
		"UTF-16, blanks":    {Path: chatPath, Body: []byte(wide("\n\n\n\n " + plain))},
		"UTF-16, big":       {Path: chatPath, Body: wider(plain, binary.BigEndian, 2)},
		"UTF-32":            {Path: chatPath, Body: wider(plain, binary.LittleEndian, 4)},
		"UTF-32, big":       {Path: chatPath, Body: wider("\ufeff"+plain, binary.BigEndian, 4)},
		"no UTF-8":          {Path: chatPath, Body: []byte(strings.Replace(plain, "so", "\xff\xc0\xaf", 1))},
		"no blanks":         {Path: chatPath, Body: []byte(strings.ReplaceAll(plain, " ", "_"))},
		"two documents":     {Path: chatPath, Body: []byte(plain + `{"model":"cheap"}`)},
		"cut off":           {Path: chatPath, Body: []byte(plain[:len(plain)-1])},
		"a form":            {Path: chatPath, Type: "application/x-www-form-urlencoded", Body: []byte(plain)},
	}
	// What stands behind or before the fields of a request, or in place of them.
	for _, change := range []string{
		`"model":"cheap"`, `"model":null`, `"model":["cheap"]`, `"Model":"cheap"`, `"mod\u0065l":"cheap"`, `"model\u0000":"cheap"`, `"metadata":{"model":"cheap"}`,
		`"messages":[]`, `"Messages":[]`, `"max_tokens":1`, `"max_tokens":null`, `"max_tokens":-1`, `"max_tokens":"1"`, `"MAX_TOKENS":1`, `"max_completion_tokens":1`,
		`"max_completion_tokens":null`, `"max_output_tokens":1`, `"maxOutputTokens":1`, `"generationConfig":{"maxOutputTokens":1}`, `"n":0`, `"n":7`, `"N":7`, `"n":"7"`, `"n":1e1`,
	} {
		all["after: "+change] = hostile{Path: chatPath, Body: []byte(plain[:len(plain)-1] + "," + change + "}")}
		all["before: "+change] = hostile{Path: chatPath, Body: []byte("{" + change + "," + plain[1:])}
	}
	for _, change := range []string{
		`"max_tokens":5e4`, `"max_tokens":50000.0`, `"max_tokens":"50000"`, `"max_tokens":" 50000 "`, `"max_tokens":"5_0000"`, `"max_tokens":"5e4"`, `"max_tokens":[50000]`,
		`"max_tokens":"` + strings.Repeat("0", 200) + `50000"`, `"max_tokens":0`, `"max_tokens":-1`, `"max_tokens":0.5`, `"max_tokens":NaN`, `"max_tokens":9007199254740993`,
		`"max_tokens":1e400`, `"max_completion_tokens":50000`, "\"max_to\u212aen\u017f\":50000", `"Max_Tokens":50000`, `"max\u005ftokens":50000`, `"max_tokens":true`, `"x":1`,
		`"max_output_tokens":1`, `"max_tokens":1,"max_completion_tokens":50000`, `"max_tokens":50000,"max_completion_tokens":1`, `"max_tokens":1,"max_completion_tokens":0`,
	} {
		all["instead: "+change] = hostile{Path: chatPath, Body: []byte(strings.Replace(plain, `"max_tokens":50000`, change, 1))}
	}
	for _, name := range []string{`d\u0065ar`, `dear\u0000`, `dear\ud800`, `\ud800dear`, "de\\u0061r"} {
		all["model: "+name] = hostile{Path: chatPath, Body: []byte(strings.Replace(plain, "dear", name, 1))}
	}
	for _, name := range []string{"me\u017f\u017fage\u017f", "MESSAGES", `m\u0065ssages`} {
		all["prompt: "+name] = hostile{Path: chatPath, Body: []byte(strings.Replace(plain, "messages", name, 1))}
	}
	all["deep"] = hostile{Path: chatPath, Body: []byte(strings.Replace(plain, `"messages"`, `"x":`+strings.Repeat("[", 900)+strings.Repeat("]", 900)+`,"messages"`, 1))}
	return all
}

func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.Bytes()
}

// wider is a text in units of some bytes.
func wider(text string, order binary.AppendByteOrder, size int) (all []byte) {
	if size == 2 {
		for _, c := range utf16.Encode([]rune(text)) {
			all = order.AppendUint16(all, c)
		}
		return all
	}
	for _, c := range text {
		all = order.AppendUint32(all, uint32(c))
	}
	return all
}

// readByGo is what a Go program understands that reads the first document of a body.
func readByGo(r hostile) []understood {
	var body struct {
		Model     *string                    `json:"model"`
		Messages  []struct{ Content string } `json:"messages"`
		MaxTokens *int64                     `json:"max_tokens"`
		N         *int64                     `json:"n"`
	}
	if json.NewDecoder(bytes.NewReader(r.Body)).Decode(&body) != nil {
		return nil
	}
	var u understood
	if body.Model != nil {
		u.Model = *body.Model
	}
	for _, m := range body.Messages {
		u.Text += int64(len(m.Content))
	}
	if u.N = 1; body.N != nil {
		u.N = max(1, *body.N)
	}
	if body.MaxTokens != nil {
		u.Max = max(0, *body.MaxTokens)
	}
	return []understood{u}
}

// A client does not choose its price: a request is denied, or it reserves at least what it is worth as other
// programs understand it.
func TestPrices(t *testing.T) {
	requests := hostileRequests()
	var names []string
	var lines bytes.Buffer
	for name, r := range requests {
		names = append(names, name)
		if err := json.NewEncoder(&lines).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	readings := map[string][]understood{}
	for _, program := range [][]string{{"python3", "testdata/read.py"}, {"node", "testdata/read.js"}} {
		cmd := exec.Command(program[0], program[1:]...)
		cmd.Stdin = bytes.NewReader(lines.Bytes())
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		scan := bufio.NewScanner(bytes.NewReader(out))
		for _, name := range names {
			var found []understood
			if !scan.Scan() || json.Unmarshal(scan.Bytes(), &found) != nil {
				t.Fatalf("%s: %s: %s", program, name, scan.Text())
			}
			readings[name] = append(readings[name], found...)
		}
	}
	denied := 0
	for name, r := range requests {
		s := newSettling(t, `rules: [{id: money, key: ip, algorithm: fixed_window, limit: 1000000000000/1d, tokens: {models: {dear: {input: 100, output: 100}}}}]`, Options{})
		reserved := int64(-1)
		h := s.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reserved = s.used("money", client) }))
		request := chat(r.Path, string(r.Body))
		request.Header.Set("Content-Encoding", r.Encoding)
		request.Header.Set("Content-Type", r.Type)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request)
		if reserved < 0 {
			if denied++; r.allowed || w.Code != 400 && w.Code != 415 && w.Code != 429 {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
			continue
		}
		for _, u := range append(readings[name], readByGo(r)...) {
			if want := u.price(); reserved < want {
				t.Errorf("%s reserves %d, and is worth %d to a program that reads %+v", name, reserved, want, u)
			}
		}
	}
	t.Logf("%d of %d requests are denied", denied, len(requests))
}
