package process_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// postgresProxy stands between a daemon and PostgreSQL, follows each connection's transactions, and can leave one
// COMMIT without an answer:
//
//	answerLost:  client ── COMMIT ──► server     committed; the answer is swallowed
//	requestLost: client ── COMMIT ─✗  server     rolled back; there is no answer
//
// The client's connection stays open and silent, as in a network partition.
type postgresProxy struct {
	*proxy
	databaseURL string

	mu     sync.Mutex
	needle string
	passes int
	loss   loss
	// struck is closed when a COMMIT was hit.
	struck chan struct{}
}

type loss int

const (
	answerLost loss = iota + 1
	requestLost
)

func newPostgresProxy(t *testing.T, databaseURL string) *postgresProxy {
	t.Helper()
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	p := &postgresProxy{struck: make(chan struct{})}
	p.proxy = newProxy(t, parsed.Host, p.serve)
	parsed.Host = p.address
	p.databaseURL = parsed.String()
	return p
}

// strike arms the proxy: the nth COMMIT of a transaction that ran a statement with needle in its text is hit.
func (p *postgresProxy) strike(needle string, nth int, what loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.needle, p.passes, p.loss = needle, nth, what
}

// hits says whether the end of a transaction with these statements is to be hit, and how.
func (p *postgresProxy) hits(statements []string) loss {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.passes == 0 {
		return 0
	}
	for _, statement := range statements {
		if strings.Contains(statement, p.needle) {
			if p.passes--; p.passes > 0 {
				return 0
			}
			close(p.struck)
			return p.loss
		}
	}
	return 0
}

func (p *postgresProxy) serve(client, server net.Conn) {
	silent := make(chan struct{}) // Closed when the client gets no more answers.
	join(func() error {
		err := p.toServer(client, server, silent)
		var lost lostError
		if !errors.As(err, &lost) {
			return err
		}
		if lost == errRequestLost {
			_ = server.Close() // PostgreSQL rolls back.
		}
		_, err = io.Copy(io.Discard, client) // Until the client gives up.
		return err
	}, func() error {
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			select {
			case <-silent:
				if err != nil {
					<-p.closing // The client's side ends the connection, or the test.
					return err
				}
				continue
			default:
			}
			if _, writeErr := client.Write(buffer[:n]); err != nil || writeErr != nil {
				return err
			}
		}
	})
}

type lostError string

func (e lostError) Error() string { return string(e) }

const (
	errRequestLost = lostError("the COMMIT did not get to the server")
	errAnswerLost  = lostError("the answer to the COMMIT is swallowed")
)

// toServer copies the client's messages, following what each transaction runs, until a COMMIT is hit.
func (p *postgresProxy) toServer(client io.Reader, server io.Writer, silent chan<- struct{}) error {
	if err := copyStartup(client, server); err != nil {
		return err
	}
	transaction := newTransaction()
	for {
		message, err := readMessage(client)
		if err != nil {
			return err
		}
		if transaction.endsWith(message) {
			switch p.hits(transaction.statements) {
			case requestLost:
				close(silent)
				return errRequestLost
			case answerLost:
				close(silent)
				if _, err := server.Write(message); err != nil {
					return err
				}
				return errAnswerLost
			}
		}
		transaction.follow(message)
		if _, err := server.Write(message); err != nil {
			return err
		}
	}
}

// copyStartup copies the first message, which has a length and no type.
func copyStartup(client io.Reader, server io.Writer) error {
	head := make([]byte, 4)
	if _, err := io.ReadFull(client, head); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(head)-4)
	if _, err := io.ReadFull(client, body); err != nil {
		return err
	}
	_, err := server.Write(append(head, body...))
	return err
}

func readMessage(client io.Reader) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(client, head); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	if _, err := io.ReadFull(client, body); err != nil {
		return nil, err
	}
	return append(head, body...), nil
}

// transaction follows one connection: prepared statements by name, and the texts that ran since the last end of a
// transaction.
type transaction struct {
	prepared   map[string]string
	statements []string
	explicit   bool
}

func newTransaction() *transaction { return &transaction{prepared: make(map[string]string)} }

// endsWith reports whether the message commits: COMMIT itself, or what ends an implicit transaction.
func (x *transaction) endsWith(message []byte) bool {
	switch message[0] {
	case 'Q':
		return isCommit(text(message[5:]))
	case 'B':
		return isCommit(x.bound(message))
	case 'S':
		return !x.explicit && len(x.statements) > 0
	default:
		return false
	}
}

func (x *transaction) follow(message []byte) {
	switch message[0] {
	case 'P':
		name := text(message[5:])
		x.prepared[name] = text(message[5+len(name)+1:])
	case 'Q':
		x.run(text(message[5:]))
	case 'B':
		x.run(x.bound(message))
	case 'S':
		if !x.explicit {
			x.statements = nil
		}
	}
}

func (x *transaction) run(sql string) {
	switch firstWord(sql) {
	case "begin", "start":
		x.explicit, x.statements = true, nil
	case "commit", "rollback":
		x.explicit, x.statements = false, nil
	default:
		x.statements = append(x.statements, sql)
	}
}

// bound is the text of the statement that a Bind message names after its portal.
func (x *transaction) bound(message []byte) string {
	portal := text(message[5:])
	return x.prepared[text(message[5+len(portal)+1:])]
}

func isCommit(sql string) bool { return firstWord(sql) == "commit" }

func firstWord(sql string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
	return strings.ToLower(strings.TrimRight(word, ";"))
}

// text is a C string.
func text(raw []byte) string {
	before, _, _ := bytes.Cut(raw, []byte{0})
	return string(before)
}
