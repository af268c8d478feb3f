package redis

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed script/*.lua
var scriptFiles embed.FS

// script is all files in the order of their names, as one chunk.
var script = rueidis.NewLuaScript(readScript())

func readScript() string {
	var b strings.Builder
	files, err := fs.Glob(scriptFiles, "script/*.lua")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, name := range files {
		text, err := scriptFiles.ReadFile(name)
		if err != nil {
			panic(err) // it was found a moment ago
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}
