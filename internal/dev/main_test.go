package dev

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("DEV_TEST_SERVE") != "" {
		serveForTest()
		return
	}
	goleak.VerifyTestMain(m)
}
