module github.com/weirhq/weir/store/redis/goredis

go 1.26.0

require (
	github.com/redis/go-redis/v9 v9.23.0
	github.com/weirhq/weir v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/redis/rueidis v1.0.79 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/weirhq/weir => ../../..
