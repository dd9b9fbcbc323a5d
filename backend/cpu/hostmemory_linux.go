package cpu

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hostMemory is the machine's memory in bytes, or the container's or the process's limit if that is less; 0 if unknown.
func hostMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	total := int64(uint64(info.Totalram) * uint64(info.Unit))
	var space unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &space) == nil && space.Cur < uint64(total) {
		total = int64(space.Cur)
	}
	raw, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return total
	}
	// "max" is no limit.
	if limit, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil {
		return min(total, limit)
	}
	return total
}
