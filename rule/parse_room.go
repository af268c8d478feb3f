package rule

import (
	"context"

	"github.com/weirhq/weir/internal/room"
)

// What parsing takes in memory. TestHostileDocuments holds it against documents of many
// kinds.
const (
	MaxMemory = 20 * MaxDocument // bytes for one document, whatever is in it
	maxAtOnce = 3 * MaxMemory    // for all that are parsed in this process

	perByte     = 800      // of a short document that is nothing but values
	perDocument = 40 << 20 // of one that is longer: a piece of it that is read at once
	perByteMore = 10       // and what is kept of all of it
)

// parsing has room for what is parsed at the same time. Whoever comes later waits.
var parsing = room.New(maxAtOnce)

// makeRoom waits until a document of so many bytes can be parsed, until done is called.
func makeRoom(size int) (done func()) {
	n := int64(min(size, MaxDocument))
	n = min(n*perByte, perDocument) + n*perByteMore
	_ = parsing.Take(context.Background(), n) // cannot fail: that context does not end
	return func() { parsing.Give(n) }
}
