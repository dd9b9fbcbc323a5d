package experiment

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks an open file for this process. The system unlocks it when the process ends, however it does.
func tryLock(f *os.File) bool {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped)) == nil
}
