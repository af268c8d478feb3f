// Package memory is the store inside the process: no server, no goroutine, no
// allocation on the way.
//
// A key is remembered as 128 bits of a seeded hash and three words of state, in
// tables without pointers, so that the garbage collector does not see a million
// keys. Time passes only when somebody asks; keys that are as good as new go by
// themselves. The number of keys is bounded, and a flood of new ones never
// frees a client who is being limited while a recovered one could go instead.
package memory
