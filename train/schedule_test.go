package train

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScheduleWarmsUpPeaksAndDecays(t *testing.T) {
	s := Schedule{Kind: ScheduleCosine, Peak: 1, Min: 0.1, Warmup: 9, Steps: 110}
	require.InDelta(t, 0.1, s.At(1), 1e-12)
	require.InDelta(t, 0.9, s.At(9), 1e-12)
	require.InDelta(t, 1.0, s.At(10), 1e-12)
	require.InDelta(t, 0.55, s.At(60), 1e-12, "half way between the peak at 10 and the minimum at 110")
	require.InDelta(t, 0.1, s.At(110), 1e-12)
	require.InDelta(t, 0.1, s.At(1000), 1e-12)
	for step := 1; step < 110; step++ {
		if step < 10 {
			require.Less(t, s.At(step), s.At(step+1))
		} else {
			require.Greater(t, s.At(step), s.At(step+1))
		}
	}
}

func TestScheduleCorners(t *testing.T) {
	require.Equal(t, 1.0, Schedule{Kind: ScheduleCosine, Peak: 1, Steps: 1}.At(1), "a single step runs at the peak")
	require.Equal(t, 1.0, Schedule{Kind: ScheduleCosine, Peak: 1, Steps: 10}.At(1), "no warm-up")
	require.Equal(t, 0.0, Schedule{Kind: ScheduleCosine, Peak: 1, Steps: 10}.At(10), "a minimum of zero is reached")
	require.Equal(t, 1.0, Schedule{Kind: ScheduleConstant, Peak: 1, Min: 0.1, Steps: 10}.At(10))
	require.InDelta(t, 0.5, Schedule{Kind: ScheduleCosine, Peak: 1, Warmup: 99, Steps: 50}.At(50), 1e-12, "all warm-up")
}
