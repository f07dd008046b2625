package execution

import (
	"bytes"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relayops/relayops/internal/testenv"
)

// cutter is a TCP proxy before PostgreSQL that cuts one connection at one statement: before the server gets it, or
// after the server has done it and before the client hears of it. The client sees the same both times.
type cutter struct {
	listener net.Listener
	server   string

	mu     sync.Mutex
	marker []byte // of the message to cut at; nil: nothing is cut
	after  bool
	cuts   int
	// answered is called after the server's answer was swallowed, before the client sees the connection end.
	answered func()
}

// newCutter gives a pool that goes through a cutter, and the cutter.
func newCutter(t *testing.T, databaseURL string) (*cutter, *pgxpool.Pool) {
	t.Helper()
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: listener, server: parsed.Host}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { c.serve(client) })
		}
	})
	parsed.Host = listener.Addr().String()
	pool := testenv.Pool(t, parsed.String())
	t.Cleanup(func() {
		pool.Close()
		_ = listener.Close()
		serving.Wait()
	})
	return c, pool
}

// arm cuts at the next message to the server that holds the marker.
func (c *cutter) arm(marker []byte, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marker, c.after, c.cuts = marker, after, 0
}

func (c *cutter) cut(message []byte) (cut, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.marker == nil || !bytes.Contains(message, c.marker) {
		return false, false
	}
	c.marker = nil
	c.cuts++
	return true, c.after
}

func (c *cutter) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	swallow := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = client.Close() }()
		_ = c.answers(client, server, swallow)
	}()
	defer func() { <-done }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			_ = server.Close()
			return
		}
		cut, after := c.cut(buffer[:n])
		if cut && !after {
			_ = server.Close()
			return
		}
		if cut {
			close(swallow)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if cut {
			return // The other direction ends when the answer is there.
		}
	}
}

var errCut = errors.New("cut")

// answers copies from server to client. Once swallow is closed nothing is copied, and the end of the statement
// (ReadyForQuery) ends the connection.
func (c *cutter) answers(client, server net.Conn, swallow <-chan struct{}) error {
	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return err
		}
		select {
		case <-swallow:
			if n >= 6 && buffer[n-6] == 'Z' {
				if c.answered != nil {
					c.answered()
				}
				return errCut
			}
			continue
		default:
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return err
		}
	}
}
