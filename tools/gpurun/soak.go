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
	return r.longRun(ctx)
}

// tenths is into how many parts a long training's losses are averaged.
const tenths = 10

// risen is by how much the mean loss of a tenth may be over that of the one before: a few hundred steps' means waver, and a schedule's peak costs something.
const risen = 1.05

// long is what a training of many minutes on the device came to: too many steps for the CPU to follow.
type long struct {
	Steps   int       `json:"steps"`
	Minutes float64   `json:"minutes"`
	Skipped int       `json:"skipped"` // steps that overflowed
	Means   []float64 `json:"means"`   // of the losses of each tenth
}

func (l long) String() string {
	return fmt.Sprintf("%d steps in %.1f minutes, %d left out; mean losses of its tenths %.4f", l.Steps, l.Minutes, l.Skipped, l.Means)
}

// longRun trains for some minutes, by the speed that the soak had.
func (r *run) longRun(ctx context.Context) error {
	if r.size.minutes == 0 {
		return nil
	}
	before, err := readMetrics(filepath.Join(r.dir, "soak-device", train.MetricsFile))
	if err != nil {
		return err
	}
	first, last := before[0], before[len(before)-1]
	if len(before) < 2 || last.Elapsed <= first.Elapsed {
		return errors.New("the soak is too short to say how many steps the minutes have")
	}
	steps := max(tenths, int(60*r.size.minutes*float64(last.Step-first.Step)/(last.Elapsed-first.Elapsed)))
	dir := filepath.Join(r.dir, "long")
	args := append([]string{"train", "--device", r.device, "--seed", "1", "--out", dir, "--set", "sample_every=0"}, r.size.soak...)
	if !r.command(ctx, "long.txt", append(args, "--steps", fmt.Sprint(steps))...) {
		return nil // it is noted
	}
	lines, err := readMetrics(filepath.Join(dir, train.MetricsFile))
	if err != nil {
		return err
	}
	l, err := judge(lines)
	r.summary.Long = &l
	return err
}

// judge looks for losses that are none or go up.
func judge(lines []train.Metrics) (long, error) {
	l := long{Steps: len(lines)}
	if len(lines) < tenths {
		return l, fmt.Errorf("%d steps are too few to look at", len(lines))
	}
	l.Minutes = lines[len(lines)-1].Elapsed / 60
	for i := range tenths {
		sum := 0.0
		part := lines[i*len(lines)/tenths : (i+1)*len(lines)/tenths]
		for _, m := range part {
			if m.Skipped {
				l.Skipped++
			}
			if math.IsNaN(m.Loss) || math.IsInf(m.Loss, 0) {
				return l, fmt.Errorf("the loss of step %d is no number", m.Step)
			}
			sum += m.Loss
		}
		l.Means = append(l.Means, sum/float64(len(part)))
		if i > 0 && l.Means[i] > risen*l.Means[i-1] {
			return l, fmt.Errorf("the loss went up: its mean was %.4f over a tenth of the steps, and %.4f over the next, up to step %d", l.Means[i-1], l.Means[i], part[len(part)-1].Step)
		}
	}
	return l, nil
}

func readLosses(path string) ([]float64, error) {
	all, err := readMetrics(path)
	if err != nil {
		return nil, err
	}
	losses := make([]float64, len(all))
	for i, m := range all {
		losses[i] = m.Loss
	}
	return losses, nil
}

func readMetrics(path string) ([]train.Metrics, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := train.ReadMetrics(f)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no step", path)
	}
	return all, err
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
