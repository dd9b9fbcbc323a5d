package bench

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

// residentVariable makes the test binary train and print what it held.
const residentVariable = "VKTRAIN_TEST_RESIDENT"

// resident is what a process held, in bytes.
type resident struct {
	Before, Peak int64
	Need         train.Memory
}

// A process that makes a model and takes training steps holds what the plan says, and a tenth more at most. It is a process of its own, for
// the peak counts from its start.
func TestResidentMemoryIsThePlans(t *testing.T) {
	if os.Getenv(residentVariable) != "" {
		require.NoError(t, json.NewEncoder(os.Stdout).Encode(trainResident(t)))
		os.Exit(0)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestResidentMemoryIsThePlans$")
	c.Env = append(os.Environ(), residentVariable+"=1")
	c.Stderr = os.Stderr
	out, err := c.Output()
	require.NoError(t, err)
	var r resident
	require.NoError(t, json.Unmarshal(out, &r))
	held := r.Peak - r.Before
	t.Logf("%+v: %.3f of the need of %d bytes", r, float64(held)/float64(r.Need.Total()), r.Need.Total())
	require.Greater(t, r.Need.Total(), int64(300e6))
	require.Greater(t, held, r.Need.Fixed())
	require.LessOrEqual(t, float64(held), 1.1*float64(r.Need.Total()))
}

func trainResident(t *testing.T) (r resident) {
	r.Before = PeakResident()
	cfg := model.Default()
	cfg.VocabSize, cfg.DModel, cfg.NLayers, cfg.NHeads, cfg.DFF, cfg.SeqLen, cfg.Tied = 8192, 512, 6, 8, 1408, 128, true
	dev, err := cpu.New(cpu.Options{Threads: 2})
	require.NoError(t, err)
	tr, err := newTrainee(t.Context(), dev, Model{Name: "resident", Config: cfg}, StepOptions{Batch: 2, SeqLen: 128, Steps: 2})
	require.NoError(t, err)
	for range 2 {
		_, err := tr.step()
		require.NoError(t, err)
	}
	programs, err := train.StepperPrograms(cfg, train.ProgramOptions{Batch: 2, MaxNorm: 1}, 1)
	require.NoError(t, err)
	r.Need, r.Peak = train.MemoryOn(dev, programs...), PeakResident()
	require.NoError(t, tr.close())
	require.NoError(t, dev.Close())
	return r
}
