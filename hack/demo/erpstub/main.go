// Command erpstub serves the demo's ERP stand-in until it gets SIGINT or SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/relayops/relayops/hack/demo/erp"
)

func main() {
	address := flag.String("listen", "127.0.0.1:18080", "address to listen at")
	seed := flag.Uint64("seed", 1, "what the ERP's moods follow from")
	flag.Parse()
	if err := serve(*address, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "erpstub:", err)
		os.Exit(1)
	}
}

func serve(address string, seed uint64) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken: stop the program that listens there; the sample pipeline posts to this address",
			address)
	}
	if err != nil {
		return err
	}
	server := &http.Server{Handler: erp.New(seed).Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close() // Requests that are never answered would hold a graceful shutdown.
	}()
	_, _ = fmt.Fprintln(os.Stdout, "listening at http://"+address)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
