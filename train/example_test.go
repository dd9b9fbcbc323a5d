package train_test

import (
	"context"
	"fmt"
	"log"

	"github.com/vktrain/vktrain/backend/cpu"
	"github.com/vktrain/vktrain/train"
)

// A run of a very small model on the built-in stories.
func Example() {
	cfg, err := train.FromPreset("nano")
	if err != nil {
		log.Fatal(err)
	}
	cfg.Model.DModel, cfg.Model.NLayers, cfg.Model.DFF, cfg.Model.HeadDim = 24, 1, 48, 4
	cfg.Batch, cfg.SeqLen, cfg.Steps, cfg.EvalBatches = 4, 32, 30, 4
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	t, err := train.New(context.Background(), cfg, dev)
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	var first, last float64
	result, err := t.Run(context.Background(), train.Hooks{Step: func(m train.Metrics) error {
		if m.Step == 1 {
			first = m.Loss
		}
		last = m.Loss
		return nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Steps, "steps,", result.Tokens, "tokens; it learns:", last < first-1)
	// Output: 30 steps, 3840 tokens; it learns: true
}
