package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/train"
)

// peerScript measures PyTorch.
//
//go:embed peer.py
var peerScript string

// peerTimes are what it prints, each by precision.
type peerTimes struct {
	Version string `json:"version"`
	Device  string `json:"device"`
	MatMul  map[string]struct {
		Ms     float64 `json:"ms"`
		GFLOPs float64 `json:"gflops"`
	} `json:"matmul"`
	Step map[string]struct {
		Ms        float64 `json:"ms"`
		PeakBytes int64   `json:"peak_bytes"` // 0 where PyTorch does not tell
		Error     string  `json:"error"`
	} `json:"step"`
}

// precisions are those that a GPU is measured in.
const precisions = "f32,bf16,f16"

// peer times a product of size and a step of the preset with the device and with PyTorch, one after the other, in each precision. That there is no PyTorch for
// the device is no failure: the summary says it.
func (r *run) peer(ctx context.Context) error {
	p, size := r.size.peer, strconv.Itoa(r.size.product)
	dev := []string{"--device", r.device}
	r.both(ctx, "matmul", append([]string{"bench", "matmul", "--size", size, "--precision", precisions, "--repeats", strconv.Itoa(r.size.repeats)}, dev...)...)
	name := "precisions-" + p.name
	r.both(ctx, name, append(append([]string{"bench", "step", "--preset", p.name, "--precision", precisions, "--steps", strconv.Itoa(r.size.repeats)}, p.flags()...), dev...)...)
	if err := errors.Join(readJSON(filepath.Join(r.dir, "matmul.json"), &r.summary.MatMul), readJSON(filepath.Join(r.dir, name+".json"), &r.summary.Precisions)); err != nil {
		return nil // the command that should have written it is noted
	}
	times, err := r.pyTorch(ctx, p, size)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.summary.NoPeer = err.Error()
	default:
		r.summary.Peer = times
	}
	return nil
}

func readJSON(path string, x any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, x)
}

// pyTorch runs the script.
func (r *run) pyTorch(ctx context.Context, p preset, size string) (*peerTimes, error) {
	cfg, err := train.FromPreset(p.name)
	if err != nil {
		return nil, err
	}
	m := cfg.Model.Config.Normalize()
	if m.VocabSize == 0 {
		m.VocabSize = cfg.Data.VocabSize
	}
	config, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	script := filepath.Join(r.dir, "peer.py")
	if err := os.WriteFile(script, []byte(peerScript), 0o666); err != nil {
		return nil, err
	}
	args := []string{script, r.torch, size, strconv.Itoa(r.size.repeats), precisions, string(config), strconv.Itoa(p.batch), strconv.Itoa(p.seq)}
	fmt.Println(r.python + " " + strings.Join(args[:5], " ") + " ...")
	began := time.Now()
	out, err := exec.CommandContext(ctx, r.python, args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
			err = fmt.Errorf("%w: %s", err, lines[len(lines)-1])
		}
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(r.dir, "peer.json"), out, 0o666); err != nil {
		return nil, err
	}
	r.note(command{Name: "peer.json", Args: args[:5], Seconds: time.Since(began).Seconds()})
	var times peerTimes
	return &times, json.Unmarshal(out, &times)
}

// verdicts hold what was measured against what the project wants of a GPU.
func (s *summary) verdicts() []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	best := map[string]bench.Product{}
	for _, p := range s.MatMul.Products {
		if p.Precision == "f32" {
			say("%s %dx%dx%d in f32: %.0f GFLOP/s, %.0f%% of the FMA peak (wanted: 80%%)", p.Order, p.M, p.N, p.K, p.GFLOPs, 100*p.OfPeak)
		}
		if p.Order == "NT" {
			best[p.Precision] = p
		}
	}
	if s.Peer == nil {
		say("PyTorch was not measured: %s", s.NoPeer)
		return list
	}
	for _, d := range strings.Split(precisions, ",") {
		if p, ok := best[d]; ok && s.Peer.MatMul[d].GFLOPs > 0 {
			say("NT %dx%dx%d in %s: %.0f GFLOP/s, %.2f of PyTorch's %.0f (wanted for bf16 and f16: 0.6)", p.M, p.N, p.K, d, p.GFLOPs, p.GFLOPs/s.Peer.MatMul[d].GFLOPs, s.Peer.MatMul[d].GFLOPs)
		}
	}
	for _, p := range s.Precisions {
		theirs := s.Peer.Step[p.Precision]
		if theirs.Error != "" {
			say("step of %s: %.1f ms; PyTorch: %s", p.Name, p.MsPerStep, theirs.Error)
			continue
		}
		if theirs.Ms > 0 {
			say("step of %s: %.1f ms, %.2f times as fast as PyTorch's %.1f (wanted: 1)", p.Name, p.MsPerStep, theirs.Ms/p.MsPerStep, theirs.Ms)
		}
		if theirs.PeakBytes > 0 {
			say("memory of %s: %d bytes, %.2f of PyTorch's %d (wanted: at most 0.6)", p.Name, p.DeviceBytes, float64(p.DeviceBytes)/float64(theirs.PeakBytes), theirs.PeakBytes)
		}
	}
	return list
}
