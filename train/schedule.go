package train

import "math"

// Names of schedules (Config.Schedule).
const (
	ScheduleCosine   = "cosine"   // half a cosine from the peak to the minimum (Loshchilov & Hutter 2017, without restarts)
	ScheduleConstant = "constant" // the peak until the end
)

// Schedule gives each step its learning rate: a linear warm-up, then a decay.
type Schedule struct {
	Kind   string
	Peak   float64
	Min    float64 // the last step's rate
	Warmup int     // steps of warm-up; the step after them has the peak
	Steps  int
}

// At is the learning rate of a step, the first of which is 1. Steps after the last keep its rate.
//
//	step <= Warmup:  Peak step / (Warmup + 1)
//	cosine:          Min + (Peak - Min) (1 + cos(pi t)) / 2, t from 0 at step Warmup+1 to 1 at the last
func (s Schedule) At(step int) float64 {
	if step <= s.Warmup {
		return s.Peak * float64(max(step, 0)) / float64(s.Warmup+1)
	}
	if s.Kind == ScheduleConstant {
		return s.Peak
	}
	first := s.Warmup + 1
	if step >= s.Steps {
		if s.Steps <= first {
			return s.Peak
		}
		return s.Min
	}
	t := float64(step-first) / float64(s.Steps-first)
	return s.Min + (s.Peak-s.Min)*(1+math.Cos(math.Pi*t))/2
}
