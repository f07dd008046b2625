package worker

import (
	"testing"

	"github.com/relayops/relayops/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
