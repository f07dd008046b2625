package resolve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/relayops/relayops/internal/engine"
)

// Key of a relay or a pipeline: <instance>/<namespace>/<name>. No part can hold a slash.
func Key(instance, namespace, name string) string { return instance + "/" + namespace + "/" + name }

// maxConsumerBytes bounds a consumer's name. The broker allows 255 bytes; the name is also a directory of its store.
const maxConsumerBytes = 128

// Consumer is the name of a pipeline's durable consumer. Different keys have different names: letters, digits and
// '-' stand for themselves, '/' is '_', every other byte is '=' and two upper-case hexadecimal digits. A name that
// would be too long ends in "=h" and a hash instead, which no other name does.
func Consumer(pipelineKey string) string {
	var b strings.Builder
	for i := range len(pipelineKey) {
		switch c := pipelineKey[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-':
			b.WriteByte(c)
		case c == '/':
			b.WriteByte('_')
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	name := b.String()
	if len(name) <= maxConsumerBytes {
		return name
	}
	sum := sha256.Sum256([]byte(pipelineKey))
	suffix := "=h" + hex.EncodeToString(sum[:16])
	return name[:maxConsumerBytes-len(suffix)] + suffix
}

// Revision identifies a graph: the first 16 hexadecimal digits of the SHA-256 of its canonical JSON. Key order, white
// space and defaults that are written out make no difference.
func Revision(definition engine.Definition) (string, error) {
	canonical := engine.Definition{
		Nodes: make([]engine.Node, len(definition.Nodes)), Edges: append([]engine.Edge{}, definition.Edges...),
	}
	for i, node := range definition.Nodes {
		if node.OnError == "" {
			node.OnError = engine.OnErrorAbort
		}
		if len(node.Config) > 0 {
			config, err := canonicalJSON(node.Config)
			if err != nil {
				return "", fmt.Errorf("revision: config of node %q: %w", node.ID, err)
			}
			node.Config = config
		}
		canonical.Nodes[i] = node
	}
	text, err := json.Marshal(canonical)
	if err != nil {
		return "", fmt.Errorf("revision: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// canonicalJSON has its keys sorted, and its numbers as they were written.
func canonicalJSON(text json.RawMessage) (json.RawMessage, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}
