package process_test

import (
	"context"
	"net"
	"sync"
	"testing"
)

// proxy accepts connections and joins each with one to the server.
type proxy struct {
	address string
	closing <-chan struct{}
}

// newProxy serves each connection with serve, which returns when one side is gone; both are closed then.
func newProxy(t *testing.T, server string, serve func(client, server net.Conn)) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer func() { _ = client.Close() }()
				upstream, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer func() { _ = upstream.Close() }()
				stop := context.AfterFunc(ctx, func() { _ = client.Close(); _ = upstream.Close() })
				defer stop()
				serve(client, upstream)
			})
		}
	})
	t.Cleanup(func() { cancel(); _ = listener.Close(); group.Wait() })
	return &proxy{address: listener.Addr().String(), closing: ctx.Done()}
}

// join runs both directions of a connection until one of them ends.
func join(directions ...func() error) {
	ended := make(chan struct{}, len(directions))
	for _, direction := range directions {
		go func() {
			_ = direction() // Whichever side went away: the connection is over.
			ended <- struct{}{}
		}()
	}
	<-ended
}
