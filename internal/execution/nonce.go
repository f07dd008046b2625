package execution

import (
	"strconv"
	"sync/atomic"

	"github.com/google/uuid"
)

// nonces gives each claim an owner name of its own, so that a claim whose answer was lost finds its own row. What two
// claims share a name for, both would take for theirs: the name is unique whatever the worker is called.
type nonces struct {
	prefix string
	last   atomic.Int64
}

func newNonces(owner string) *nonces {
	return &nonces{prefix: owner + "#" + uuid.New().String()[:13] + "."}
}

func (n *nonces) next() string { return n.prefix + strconv.FormatInt(n.last.Add(1), 36) }
