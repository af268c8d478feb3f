module github.com/weirhq/weir/examples/middleware/echo

go 1.26.0

require (
	github.com/labstack/echo/v5 v5.3.1
	github.com/weirhq/weir v0.0.0
)

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.6 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/weirhq/weir => ../../..
