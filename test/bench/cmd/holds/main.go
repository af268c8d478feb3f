// Command holds measures what it takes to reserve and settle beside a take, and writes the table
// to standard output and to results/.
package main

import (
	"github.com/weirhq/weir/test/bench/holds"
	"github.com/weirhq/weir/test/bench/internal/command"
)

func main() { command.Table("holds.txt", holds.Full, holds.Quick, holds.Run, holds.WriteTable) }
