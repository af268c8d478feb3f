// Package memory keeps counts in the process: for one instance, or for tests of
// programs that use Redis elsewhere. They end with the process, unless the next one
// restores a Snapshot.
//
// What is kept is bounded as a whole. When it is full, what has expired goes first, and
// then what was changed the longest time ago.
package memory
