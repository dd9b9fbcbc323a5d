package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vktrain/vktrain/bench"
)

// CostFile is what `vktrain bench step --json` printed, in a folder of runs or of an experiment: the cost of a step by itself.
const CostFile = "cost.json"

// readCost reads CostFile: one step or a list of them. Nothing is there without the file.
func readCost(dir string) ([]bench.Step, error) {
	path := filepath.Join(dir, CostFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []bench.Step
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		steps = make([]bench.Step, 1)
		err = json.Unmarshal(raw, &steps[0])
	} else {
		err = json.Unmarshal(raw, &steps)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not what vktrain bench step --json prints: %w", path, err)
	}
	return steps, nil
}

func mebibytes(n int64) cell {
	return cell{Text: fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)), Number: true}
}

// benchTable has a row for each model.
func benchTable(steps []bench.Step) *table {
	t := &table{Head: heads("model", "parameters", "tokens a step", "precision", "ms a step", "at best", "against the first", "tokens/s", "memory", "peak memory", "GFLOP/s of the model", "of the peak"),
		Note: "The models ran in turns, so that all had the same machine. Memory is that of parameters, moments, arena and inputs; its peak is the most that the process, or another device, held while it had all models. FLOPs of the model count matrix products only, so that a norm costs time and no FLOPs; the peak is that of multiply-adds as measured."}
	for i, s := range steps {
		ratio := s.Ratio
		if i == 0 {
			ratio = 1
		}
		share := cell{Text: "–", Number: true}
		if s.OfPeak > 0 {
			share.Text = fmt.Sprintf("%.1f%%", 100*s.OfPeak)
		}
		t.Rows = append(t.Rows, []cell{words(s.Name), {Text: shortCount(float64(s.Params)), Number: true}, {Text: fmt.Sprint(s.Batch * s.SeqLen), Number: true}, {Text: s.Precision, Number: true},
			digits("%.2f", s.MsPerStep), digits("%.2f", s.MsMin), digits("%.4f", ratio), digits("%.0f", s.TokensPerSec), mebibytes(s.DeviceBytes), mebibytes(s.PeakBytes),
			digits("%.2f", s.GFLOPs), share})
	}
	return t
}
