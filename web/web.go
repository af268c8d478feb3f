package web

import (
	"embed"
	"io/fs"
	"net/http"
)

// all: because .keep, which holds the place of a dashboard that is not built, begins
// with a dot.
//
//go:embed all:dist
var dist embed.FS

// Handler serves the dashboard at "/", and its parts beside it. If it was not built
// before weir was, it serves a page that says how to.
func Handler() http.Handler {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is right
	}
	return newSite(files)
}
