// Command gateway measures weir's gateway beside a bare httputil.ReverseProxy in front of
// the same upstream, and writes the table to standard output and to results/.
package main

import "github.com/weirhq/weir/test/bench/internal/command"

func main() { command.Table("gateway.txt", full, first, measure, writeTable) }
