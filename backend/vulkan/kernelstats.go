package vulkan

import "strings"

// KernelStats is what a driver's compiler tells of one kernel.
type KernelStats struct {
	Kernel     string      `json:"kernel"`
	Constants  []uint32    `json:"constants"`     // specialization constants
	Launches   int         `json:"launches"`      // in the programs
	Executable string      `json:"executable"`    // the driver's name for what it made
	Subgroup   uint32      `json:"subgroup_size"` // threads a subgroup
	Statistics []Statistic `json:"statistics"`
}

// Statistic is one number, under the driver's own name for it.
type Statistic struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Value       float64 `json:"value"`
}

// Find gives the statistic of a name, in any case of letters.
func (k *KernelStats) Find(name string) (float64, bool) { return k.FindAny(name) }

// FindAny gives the statistic of the first name that the driver has.
func (k *KernelStats) FindAny(names ...string) (float64, bool) {
	for _, name := range names {
		for _, s := range k.Statistics {
			if strings.EqualFold(s.Name, name) {
				return s.Value, true
			}
		}
	}
	return 0, false
}

// Spills is the number of registers that did not fit and went to memory, and whether the driver says so at all.
func (k *KernelStats) Spills() (n float64, known bool) {
	for _, s := range k.Statistics {
		if name := strings.ToLower(s.Name); strings.Contains(name, "spill") {
			n += s.Value
			known = true
		}
	}
	return n, known
}
