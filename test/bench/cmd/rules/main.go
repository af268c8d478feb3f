// Command rules measures what it costs to find the rules for a request, with few
// rules and with many, and writes the table to standard output and to results/.
package main

import (
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/rules"
)

func main() { command.Table("rules.txt", rules.Full, rules.Quick, rules.Run, rules.WriteTable) }
