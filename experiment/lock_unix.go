//go:build unix

package experiment

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks an open file for this process. The system unlocks it when the process ends, however it does.
func tryLock(f *os.File) bool { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil }
