// Package manage is what the servers have in common, whatever protocol they speak: who
// may call, how rules are changed, and how a question is read.
//
//	editor := manage.NewEditor(repository, apply)
//	written, err := editor.Put(ctx, manage.Terms{Author: "alice"}, &r)
//
// An [Editor] changes the document of rules so that nobody's change is lost. A [Guard]
// lets in those who have a token, and stops those who try too many. A [Question] is what
// a client says of a request. Servers of one process share one Editor and one Guard.
//
// Errors are of types that a protocol has words of its own for.
package manage
