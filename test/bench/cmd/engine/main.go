// Command engine measures a whole check of three limits in memory beside another
// limiter, and writes the table to standard output and to results/.
package main

import (
	"github.com/weirhq/weir/test/bench/engine"
	"github.com/weirhq/weir/test/bench/internal/command"
)

func main() { command.Table("engine.txt", engine.Full, engine.Quick, engine.Run, engine.WriteTable) }
