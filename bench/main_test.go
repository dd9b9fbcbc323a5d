package bench

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	triadWords = 1000
	os.Exit(m.Run())
}
