package experiment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/train"
)

const (
	readyFolder = "../experiments"
	readyLimit  = 15 * time.Minute
	// readyFLOPs a second are those of small models on two cores: the dry runs of these experiments gave 25 to 50e9 on a machine that did other things too.
	readyFLOPs = 25e9
	// startup is about what a run takes for its text, its tokenizer and its programs.
	startup = 500 * time.Millisecond
	// readyDiagnosed is by how much a diagnosed step takes longer (docs/decisions/0013).
	readyDiagnosed = 0.45
)

// readyTime is about how long an experiment's runs take one after the other.
func readyTime(m *Matrix) time.Duration {
	total := time.Duration(0)
	for _, r := range m.Runs {
		c, seconds := r.Config.Resolve(), r.Work()/readyFLOPs
		if c.DiagnosticsEvery > 0 {
			seconds *= 1 + readyDiagnosed/float64(c.DiagnosticsEvery)
		}
		total += startup + time.Duration(seconds*float64(time.Second))
	}
	for _, c := range m.Combinations {
		config := withVocab(c.Config)
		step := tokenFLOPs(config) * float64(config.TokensPerStep()) / readyFLOPs
		if m.Cost > 0 {
			total += time.Duration(float64(m.Cost+turnsMore) * step * float64(time.Second))
		}
	}
	return total
}

// ready reads an experiment of the folder, and checks what all have to say.
func ready(t *testing.T, path string) *Matrix {
	t.Helper()
	e, err := Read(path)
	require.NoError(t, err)
	for _, key := range []string{"question", "seeds", "paired_with", "diverged", "metrics"} {
		require.Contains(t, string(e.Source), "\n"+key+": ", "it is not left to a default")
	}
	require.Greater(t, len(e.Seeds), 1, "one seed says nothing of the spread")
	m, err := e.Matrix()
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(m.Combinations, func(c Combination) bool { return c.Baseline >= 0 }), "something is compared with the baseline")
	plain := []string{MetricValLoss, MetricBitsPerByte, "train_loss", metricInitialLoss, "grad_norm", "grad_norm_max", "spikes",
		MetricStepMs, metricTokensPerSec, MetricStepMemory, MetricRunMemory, MetricResident, MetricFLOPs, MetricNorms, MetricTraffic}
	for _, c := range m.Combinations {
		resolved := c.Config.Resolve()
		require.NoError(t, resolved.Validate())
		for _, name := range e.Metrics {
			if !slices.Contains(plain, name) {
				require.Positive(t, resolved.DiagnosticsEvery, "%s is of diagnosed steps", name)
			}
		}
	}
	return m
}

// Each ready experiment runs within its time, and has its paper's settings beside it and a chapter in the README.
func TestReadyExperiments(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(readyFolder, "*.yaml"))
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(readyFolder, "README.md"))
	require.NoError(t, err)
	letters := map[string]bool{}
	for _, path := range paths {
		name := filepath.Base(path)
		letters[name[:1]] = true
		t.Run(name, func(t *testing.T) {
			m := ready(t, path)
			took := readyTime(m)
			t.Logf("%d runs, %.1f TFLOP, about %s", len(m.Runs), totalWork(m)/1e12, took.Round(time.Second))
			require.Less(t, took, readyLimit)
			require.Contains(t, string(readme), "`"+name+"`")

			full := ready(t, filepath.Join(readyFolder, "paper", name))
			require.Equal(t, m.Question, full.Question)
			require.Equal(t, m.PairedWith, full.PairedWith)
			require.Equal(t, m.Metrics, full.Metrics)
			require.Equal(t, m.Diverged, full.Diverged)
			for _, c := range full.Combinations {
				require.Equal(t, "paper-corpus", c.Config.Data.Path, "the built-in stories are no corpus for these models")
			}
			require.Greater(t, totalWork(full), totalWork(m))
		})
	}
	for _, letter := range strings.Split("abcdefghijk", "") {
		require.True(t, letters[letter], "experiment (%s) is there", letter)
	}
	others, err := filepath.Glob(filepath.Join(readyFolder, "paper", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, others, len(paths), "every file of the papers' settings is beside one that runs here")
}

func totalWork(m *Matrix) (flops float64) {
	for _, r := range m.Runs {
		flops += r.Work()
	}
	return flops
}

// Files that say they have the settings of table 2 of Kim et al. 2025 have them.
func TestPaperSettings(t *testing.T) {
	found := 0
	paths, err := filepath.Glob(filepath.Join(readyFolder, "paper", "*.yaml"))
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if !strings.HasPrefix(string(text), "# Table") {
			continue
		}
		found++
		t.Run(filepath.Base(path), func(t *testing.T) {
			m := ready(t, path)
			require.Len(t, m.Seeds, 5)
			for _, c := range m.Combinations {
				r := c.Config.Resolve()
				require.Equal(t, [4]int{1024, 24, 8, 128}, [4]int{r.Model.DModel, r.Model.NLayers, r.Model.NHeads, r.Model.HeadDim})
				require.Equal(t, [4]int{256 * 8192, 8192, 14400, 1440}, [4]int{r.TokensPerStep(), r.SeqLen, r.Steps, r.Warmup})
				require.Equal(t, 2e-3, r.LR)
				require.Equal(t, train.ScheduleCosine, r.Schedule)
				if !sets(m, "weight_decay") {
					require.Equal(t, 0.033, r.WeightDecay)
				}
				if !sets(m, "model.init") {
					require.Equal(t, "normal_002", r.Model.Init)
				}
			}
		})
	}
	require.Equal(t, 8, found)
}

// sets tells whether an axis has the key.
func sets(m *Matrix, key string) bool {
	return slices.ContainsFunc(m.Axes, func(a Axis) bool { return a.Key == key })
}
