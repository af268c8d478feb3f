// Command http measures what limiting costs a server, beside handlers without it and
// the middleware of others, and writes the table to standard output and to results/.
package main

import (
	"github.com/weirhq/weir/test/bench/http"
	"github.com/weirhq/weir/test/bench/internal/command"
)

func main() { command.Table("http.txt", http.Full, http.Quick, http.Run, http.WriteTable) }
