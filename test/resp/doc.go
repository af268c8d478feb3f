// Package resp tests the server for Redis clients with real ones: go-redis, rueidis,
// node-redis and ioredis. The tests of the server itself use redis-cli.
package resp
