package process_test

import (
	"net/http"
	"sync"
	"testing"
)

// gate holds the sink's answer to the first request of one order.
type gate struct {
	entered, opened chan struct{}
	open            func()
}

// holdFirst makes the sink hold its answer to the first request of the order until the gate is opened; every other
// request is answered at once.
func (w *world) holdFirst(t *testing.T, held string) *gate {
	g := &gate{entered: make(chan struct{}), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(g.open)
	w.sink.answering(func(number string, nth int, gone <-chan struct{}) int {
		if number == held && nth == 1 {
			close(g.entered)
			select {
			case <-g.opened:
			case <-gone:
			}
		}
		return http.StatusOK
	})
	return g
}

func (g *gate) awaitEntered(t *testing.T) {
	t.Helper()
	await(t, g.entered, "the sink's request")
}
