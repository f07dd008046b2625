package testenv

import (
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package, then cleanups, and stops the servers that they share. In a process that was
// started as a broker it is the broker instead.
func Main(m *testing.M, cleanups ...func() error) {
	if config := os.Getenv(brokerConfigVariable); config != "" {
		serveBroker(config)
		return
	}
	code := m.Run()
	for _, cleanup := range cleanups {
		if err := cleanup(); err != nil {
			fmt.Fprintln(os.Stderr, "clean up after the tests:", err)
			code = max(code, 1)
		}
	}
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the shared PostgreSQL:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}
