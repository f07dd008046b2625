package stream

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

// leastVersion has all that is used here: metadata and several filter subjects of a consumer came with 2.10.
var leastVersion = [3]int{2, 10, 0}

// CheckVersion reports a [VersionError] when the connected server is too old. A version that it cannot read passes:
// a server from a development build says less than the calls that follow.
func CheckVersion(nc *nats.Conn) error { return checkVersion(nc.ConnectedServerVersion()) }

func checkVersion(version string) error {
	var found [3]int
	if read, _ := fmt.Sscanf(version, "%d.%d.%d", &found[0], &found[1], &found[2]); read < len(found) {
		return nil
	}
	for i := range found {
		if found[i] != leastVersion[i] {
			if found[i] > leastVersion[i] {
				return nil
			}
			least := fmt.Sprintf("%d.%d.%d", leastVersion[0], leastVersion[1], leastVersion[2])
			return &VersionError{Found: version, Least: least}
		}
	}
	return nil
}
