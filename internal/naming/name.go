package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

const (
	maxLabel   = 63
	hashDigits = 8
)

// Roles end the names of children.
const (
	roleRelay         = "relay"
	roleWorker        = "worker"
	roleRelayCleanup  = "relay-cleanup"
	roleWorkerCleanup = "worker-cleanup"
)

// dns1035 is what a Service's name has to look like, and every other kind accepts.
var dns1035 = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// Relay is the name of all children of the OutboxRelay.
func Relay(outboxRelay string) string { return child(outboxRelay, roleRelay) }

// Worker is the name of all children of the Pipeline.
func Worker(pipeline string) string { return child(pipeline, roleWorker) }

// RelayCleanup is the name of the Job that removes what the OutboxRelay has in the broker.
func RelayCleanup(outboxRelay string) string { return child(outboxRelay, roleRelayCleanup) }

// WorkerCleanup is the name of the Job that removes what the Pipeline has in the broker and in the database.
func WorkerCleanup(pipeline string) string { return child(pipeline, roleWorkerCleanup) }

// SecretVolume is the name of the volume of a Secret. It begins with [VolumePrefix], as no volume of a user does, and
// ends in "--h" and a hash where the Secret's own name is no label.
func SecretVolume(secret string) string {
	name := VolumePrefix + "secret-" + secret
	if len(name) <= maxLabel && dns1035.MatchString(name) {
		return name
	}
	prefix := readable(VolumePrefix+"secret-"+secret, maxLabel-hashDigits-len("--h"))
	return prefix + "--h" + hash(secret)
}

// child is owner-role, or a readable part of it with a hash.
func child(owner, role string) string {
	name := owner + "-" + role
	if len(name) <= maxLabel && dns1035.MatchString(name) {
		return name
	}
	return readable(owner, maxLabel-len("-"+role+"-")-hashDigits) + "-" + role + "-" + hash(owner)
}

// readable is the beginning of a name in the letters, digits and dashes of a label. It begins with a letter and does
// not end in a dash.
func readable(name string, most int) string {
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(name)) {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			b.WriteByte(c)
		} else {
			b.WriteByte('-')
		}
	}
	label := strings.TrimLeft(b.String(), "-")
	if label == "" || label[0] < 'a' {
		label = "x" + label
	}
	return strings.TrimRight(label[:min(len(label), most)], "-")
}

func hash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:hashDigits]
}
