package cpu

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// physicalCores counts the cores of which the process may use a hardware thread; 0 if unknown.
func physicalCores() int {
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) != nil {
		return 0
	}
	return coresIn("/sys/devices/system/cpu", mask.IsSet)
}

// coresIn counts the different sibling lists of the hardware threads that may be used, as sysfs shows them below a folder.
func coresIn(folder string, usable func(thread int) bool) int {
	lists, _ := filepath.Glob(filepath.Join(folder, "cpu[0-9]*", "topology", "thread_siblings_list")) // the pattern is well formed
	cores := map[string]bool{}
	for _, path := range lists {
		thread, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(filepath.Dir(path))), "cpu"))
		if err != nil || !usable(thread) {
			continue
		}
		siblings, err := os.ReadFile(path)
		if err != nil {
			return 0
		}
		cores[string(siblings)] = true
	}
	return len(cores)
}

// processorName is the processor's model; empty if unknown.
func processorName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return ""
}
