package conditions

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/relayops/relayops/internal/resolve"
)

const (
	// maxMessage bounds a message, in bytes. Kubernetes allows 32 KiB.
	maxMessage = 2048
	// maxFaults bounds how many mistakes are listed.
	maxFaults = 20
)

// source is the near end of a connection: it is another one at each attempt, and would make each a change.
var source = regexp.MustCompile(`\b(tcp|udp)[46]? \S+->`)

// steady takes out of an error what changes although its cause does not, and bounds it.
func steady(message string) string {
	return clip(strings.TrimSpace(source.ReplaceAllString(message, "$1 ")))
}

func clip(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	cut := maxMessage - len("…")
	for !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + "…"
}

// faultsMessage lists mistakes, one a line, as relayops lint and the webhook do.
func faultsMessage(faults []resolve.Fault) string {
	var lines []string
	for i, fault := range faults {
		if i == maxFaults {
			lines = append(lines, fmt.Sprintf("and %d more", len(faults)-maxFaults))
			break
		}
		line := "found " + fault.Found + "; allowed: " + fault.Allowed
		if fault.Field != "" {
			line = fault.Field + ": " + line
		}
		lines = append(lines, line)
	}
	return clip(strings.Join(lines, "\n"))
}
