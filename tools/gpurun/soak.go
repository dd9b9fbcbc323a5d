package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/vktrain/vktrain/train"
)

const (
	// nudge moves the learning rate of a noisy run, and so each update, by about what a sum of some hundred float32 may be off by.
	nudge = 0x1p-20
	// driftFactor is how many times the largest move of the noisy runs the device may be off by, as in the conformance kit: they are few.
	driftFactor = 2
	// forwardError is what the rounding of a forward pass alone may do to a loss, as a part of it.
	forwardError = 1e-5
)

// soak trains on the device and on the CPU with the same seed, and twice more on the CPU with a learning rate that is moved by a rounding error.
// How far those two leave the CPU's curve is how much training amplifies rounding, and that bounds the device's.
func (r *run) soak(ctx context.Context) error {
	const lr = 3e-3
	runs := []struct {
		name, device string
		lr           float64
	}{{"device", r.device, lr}, {"cpu", "cpu", lr}, {"cpu-more", "cpu", lr * (1 + nudge)}, {"cpu-less", "cpu", lr * (1 - nudge)}}
	var curves [][]float64
	for _, x := range runs {
		dir := filepath.Join(r.dir, "soak-"+x.name)
		args := append([]string{"train", "--device", x.device, "--seed", "1", "--out", dir, "--set", fmt.Sprintf("lr=%.17g", x.lr), "--set", "sample_every=0"}, r.size.soak...)
		if !r.command(ctx, "soak-"+x.name+".txt", args...) {
			return nil // it is noted
		}
		losses, err := readLosses(filepath.Join(dir, train.MetricsFile))
		if err != nil {
			return err
		}
		curves = append(curves, losses)
	}
	d, err := compare(curves[0], curves[1], curves[2:])
	if err != nil {
		return err
	}
	r.summary.Soak = &d
	if d.Beyond > 0 {
		return errors.New(d.String())
	}
	return nil
}

func readLosses(path string) ([]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := train.ReadMetrics(f)
	if err != nil {
		return nil, err
	}
	losses := make([]float64, len(all))
	for i, m := range all {
		losses[i] = m.Loss
	}
	return losses, nil
}

// drift is how far the device's curve is from the CPU's.
type drift struct {
	Steps     int     `json:"steps"`
	Largest   float64 `json:"largest"`   // difference of a step's losses
	AtStep    int     `json:"at_step"`   // from 1, where that was
	Noise     float64 `json:"noise"`     // the largest difference of a noisy run
	Beyond    int     `json:"beyond"`    // steps with a difference over their bound
	First     int     `json:"first"`     // of those, from 1; 0 if there are none
	LastLoss  float64 `json:"last_loss"` // of the device
	LastOnCPU float64 `json:"last_on_cpu"`
}

func (d drift) String() string {
	s := fmt.Sprintf("%d steps, the losses differ by %.3g at most (step %d), noise moves them by %.3g, the last is %.6f and on the CPU %.6f", d.Steps,
		d.Largest, d.AtStep, d.Noise, d.LastLoss, d.LastOnCPU)
	if d.Beyond > 0 {
		return s + fmt.Sprintf("; %d steps are beyond the bound, the first of them is %d", d.Beyond, d.First)
	}
	return s + "; all are within the bound"
}

// compare holds each step's loss against the bound. Errors feed on themselves from step to step, so each step's is of what noise has made of any
// step so far.
func compare(device, cpu []float64, noisy [][]float64) (drift, error) {
	d := drift{Steps: len(cpu)}
	if len(cpu) == 0 {
		return d, errors.New("the curves are empty")
	}
	for _, c := range append([][]float64{device}, noisy...) {
		if len(c) != len(cpu) {
			return d, fmt.Errorf("a curve has %d steps, the CPU's %d", len(c), len(cpu))
		}
	}
	for i, loss := range cpu {
		for _, c := range noisy {
			if off := math.Abs(c[i] - loss); off > d.Noise {
				d.Noise = off
			}
		}
		off := math.Abs(device[i] - loss)
		if !(off <= driftFactor*d.Noise+forwardError*math.Abs(loss)) { // NaN is beyond
			if d.Beyond++; d.First == 0 {
				d.First = i + 1
			}
		}
		if off > d.Largest {
			d.Largest, d.AtStep = off, i+1
		}
	}
	d.LastLoss, d.LastOnCPU = device[len(cpu)-1], cpu[len(cpu)-1]
	return d, nil
}
