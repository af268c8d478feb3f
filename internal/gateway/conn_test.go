package gateway

import (
	"io"
	"net"
	"net/http/httptrace"
	"testing"
)

// Only an end that follows upon a request, with no answer in between, is made to look
// like the beginning of one.
func TestConn(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps string // g: chosen for a request, w: write, r: read a byte
		want  string
	}{
		{"never used", "", ""},
		{"chosen, nothing written", "g", ""},
		{"written", "gw", "H"},
		{"written in two parts", "gww", "H"},
		{"answered", "gwr", ""},
		{"answered, and the body goes on", "gwrw", ""},
		{"idle after an answer", "gwrwr", ""},
		{"chosen again", "gwrg", ""},
		{"written again", "gwrgw", "H"},
	} {
		near, far := net.Pipe()
		conn := &conn{Conn: near}
		for _, step := range c.steps {
			one := make([]byte, 1)
			switch step {
			case 'g':
				gotConn(httptrace.GotConnInfo{Conn: conn})
			case 'w':
				go far.Read(one)
				if n, err := conn.Write([]byte("x")); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			case 'r':
				go far.Write([]byte("y"))
				if n, err := conn.Read(one); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
		}
		far.Close()
		rest, err := io.ReadAll(conn)
		if err != nil || string(rest) != c.want {
			t.Errorf("%s: the end reads %q, %v, want %q", c.name, rest, err, c.want)
		}
		near.Close()
	}
	gotConn(httptrace.GotConnInfo{}) // HTTP/2 has connections of its own
}
