package process_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// natsProxy stands between a client and the broker. It reads the protocol message by message, and can hold what is
// published or swallow the broker's acknowledgements.
type natsProxy struct {
	*proxy
	mu      sync.Mutex
	holding chan struct{} // closed to release; nil: nothing is held.
	// held is closed when the first publish is held back.
	held     chan struct{}
	holdOnce sync.Once
	// swallow is how many acknowledgements are still to be swallowed, swallowed how many were.
	swallow, swallowed int
}

func newNATSProxy(t *testing.T, brokerURL string) *natsProxy {
	p := &natsProxy{held: make(chan struct{})}
	p.proxy = newProxy(t, strings.TrimPrefix(brokerURL, "nats://"), func(client, server net.Conn) {
		join(func() error { return p.forward(server, client, p.toBroker) },
			func() error { return p.forward(client, server, p.toClient) })
	})
	return p
}

func (p *natsProxy) url() string { return "nats://" + p.address }

// holdPublishes keeps every later publish of an event back, until release.
func (p *natsProxy) holdPublishes() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding = make(chan struct{})
}

func (p *natsProxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.holding)
	p.holding = nil
}

// swallowAcks drops the next n acknowledgements of publishes.
func (p *natsProxy) swallowAcks(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = n
}

func (p *natsProxy) swallowedAcks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.swallowed
}

func (p *natsProxy) toBroker(line string, _ []byte) (pass bool) {
	verb, rest, _ := strings.Cut(line, " ")
	if (verb == "PUB" || verb == "HPUB") && strings.HasPrefix(rest, "events.") {
		p.mu.Lock()
		holding := p.holding
		p.mu.Unlock()
		if holding != nil {
			p.holdOnce.Do(func() { close(p.held) })
			select {
			case <-holding:
			case <-p.closing:
			}
		}
	}
	return true
}

func (p *natsProxy) toClient(_ string, payload []byte) (pass bool) {
	var ack struct {
		Stream string `json:"stream"`
		Seq    uint64 `json:"seq"`
	}
	isAck := json.Unmarshal(payload, &ack) == nil && ack.Stream != "" && ack.Seq != 0
	if !isAck || bytes.Contains(payload, []byte(`"type"`)) { // With a type it is an answer of the JetStream API.
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.swallow == 0 {
		return true
	}
	p.swallow--
	p.swallowed++
	return false
}

// forward copies protocol messages; pass is asked about each.
func (p *natsProxy) forward(to io.Writer, from io.Reader, pass func(line string, payload []byte) bool) error {
	reader := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return err
		}
		payload, err := readPayload(reader, strings.TrimSpace(line))
		if err != nil {
			return err
		}
		if !pass(strings.TrimSpace(line), payload) {
			continue
		}
		if _, err := to.Write(append([]byte(line), payload...)); err != nil {
			return err
		}
	}
}

// readPayload reads what follows a line of the protocol: nothing, or as many bytes as its last word says, and CRLF.
func readPayload(reader io.Reader, line string) ([]byte, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, nil
	}
	switch strings.ToUpper(words[0]) {
	case "PUB", "HPUB", "MSG", "HMSG":
	default:
		return nil, nil
	}
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return nil, fmt.Errorf("size in %q: %w", line, err)
	}
	payload := make([]byte, size+2)
	_, err = io.ReadFull(reader, payload)
	return payload, err
}
