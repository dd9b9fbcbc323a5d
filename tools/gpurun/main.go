// Command gpurun measures and checks a GPU in one call, and leaves all results in one folder as JSON and text: docs/gpu-run.md says what.
//
//	go run ./tools/gpurun [-device vulkan] [-out DIR] [-quick] [-steps N] [-minutes M] [-python PYTHON] [-torch DEVICE]
//
// It builds vktrain and runs its commands one after the other. One that fails is noted and the others go on, unless it is the device that does not open;
// the exit status is 1 then.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/vktrain/vktrain/bench"
)

func main() {
	device := flag.String("device", "vulkan", "device to measure: vulkan or vulkan:N")
	out := flag.String("out", "", "folder for the results; gpu-run-DATE without it")
	quick := flag.Bool("quick", false, "small sizes alone: a minute on a driver that runs on the CPU")
	steps := flag.Int("steps", 3000, "steps of the training that is compared with the CPU's")
	minutes := flag.Float64("minutes", 30, "how long the device trains after that")
	python := flag.String("python", "python3", "a Python with PyTorch for the same device, to measure beside it")
	torch := flag.String("torch", "auto", "PyTorch's name of the device: cuda, mps or cpu")
	flag.Parse()
	if flag.NArg() > 0 || *steps < 1 || !(*minutes >= 0 && *minutes <= 24*60) {
		flag.Usage()
		os.Exit(2)
	}
	if *out == "" {
		*out = "gpu-run-" + time.Now().Format("20060102-150405")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := &run{dir: *out, device: *device, size: full(*steps), python: *python, torch: *torch}
	r.size.minutes = *minutes
	if *quick {
		r.size = small
	}
	if err := r.all(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "gpurun:", err)
		os.Exit(1)
	}
}

// size says how much is measured.
type size struct {
	conformance []string // flags
	presets     []preset
	repeats     int // of operators and steps
	product     int // size of the products that are measured by themselves
	peer        preset
	soak        []string
	minutes     float64 // of the long training
	software    bool    // a driver that runs on the CPU will do
}

// preset is a model to measure, with the size of its step where that is not the preset's.
type preset struct {
	name       string
	batch, seq int
}

func (p preset) flags() []string {
	if p.batch == 0 {
		return nil
	}
	return []string{"--batch", fmt.Sprint(p.batch), "--seq", fmt.Sprint(p.seq)}
}

func full(steps int) size {
	gpt2 := preset{"gpt2", 8, 1024}
	return size{
		presets: []preset{{name: "bench-a"}, {name: "bench-b"}, {name: "bench-c"}, gpt2},
		repeats: 15,
		product: 4096,
		peer:    gpt2,
		soak:    []string{"--preset", "nano", "--steps", fmt.Sprint(steps)},
	}
}

var small = size{
	conformance: []string{"--only", "contract", "--only", "rms_norm"},
	presets:     []preset{{"bench-a", 1, 32}},
	repeats:     2,
	product:     96,
	peer:        preset{"bench-a", 1, 32},
	soak:        []string{"--preset", "nano", "--steps", "40", "--set", "batch=2", "--set", "seq_len=32"},
	software:    true,
}

// run is one call.
type run struct {
	dir     string
	vktrain string // its path; empty: it is built
	device  string
	python  string // with PyTorch
	torch   string // its device
	size    size
	summary summary
}

// summary is what summary.json and summary.txt say.
type summary struct {
	Commit     string             `json:"commit,omitempty"`
	System     string             `json:"system"`
	Device     string             `json:"device"`
	Began      time.Time          `json:"began"`
	Commands   []command          `json:"commands"`
	Steps      []stepSummary      `json:"steps"`
	MatMul     bench.MatMulReport `json:"matmul"`
	Precisions []stepSummary      `json:"precisions"`        // steps of one preset in each
	Peer       *peerTimes         `json:"peer,omitempty"`    // PyTorch's
	NoPeer     string             `json:"no_peer,omitempty"` // why it was not measured
	Soak       *drift             `json:"soak,omitempty"`
	Long       *long              `json:"long,omitempty"`
}

// command is a call of vktrain.
type command struct {
	Name    string   `json:"name"` // of its files
	Args    []string `json:"args"`
	Seconds float64  `json:"seconds"`
	Error   string   `json:"error,omitempty"`
}

// stepSummary is part of what bench step --json gives.
type stepSummary struct {
	Name         string  `json:"name"`
	Precision    string  `json:"precision"`
	Device       string  `json:"device"`
	MsPerStep    float64 `json:"ms_per_step"`
	TokensPerSec float64 `json:"tokens_per_s"`
	GFLOPs       float64 `json:"gflops"`
	PeakGFLOPs   float64 `json:"peak_gflops"`
	OfPeak       float64 `json:"of_peak"`
	DeviceBytes  int64   `json:"device_bytes"`
}

func (r *run) all(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if r.vktrain == "" {
		bin, err := os.MkdirTemp("", "gpurun")
		if err != nil {
			return err
		}
		defer os.RemoveAll(bin)
		if r.vktrain, err = build(ctx, bin); err != nil {
			return err
		}
	}
	dev := []string{"--device", r.device}
	r.both(ctx, "devices", "devices")
	if why := r.noGPU(); why != "" {
		return errors.Join(r.write(), fmt.Errorf("nothing is measured: %s: install the GPU's driver, or name a device with -device vulkan:N", why))
	}
	if !r.command(ctx, "plan.txt", "plan", "--preset", "nano", "--device", r.device) && ctx.Err() == nil { // it is the first that opens the device
		return errors.Join(r.write(), fmt.Errorf("%s cannot be used, so nothing is measured: `vktrain devices` says what there is (%s)", r.device, filepath.Join(r.dir, "devices.txt")))
	}
	r.both(ctx, "pipelines", "devices", "--pipelines", "--preset", r.size.presets[len(r.size.presets)-1].name)
	r.command(ctx, "conformance.txt", append(append([]string{"conformance", "--json", filepath.Join(r.dir, "conformance.json")}, dev...), r.size.conformance...)...)
	r.both(ctx, "peak", append([]string{"bench", "peak"}, dev...)...)
	r.measure(ctx)
	if err := r.peer(ctx); err != nil {
		r.note(command{Name: "peer", Error: err.Error()})
	}
	if err := r.soak(ctx); err != nil {
		r.note(command{Name: "soak", Error: err.Error()})
	}
	return errors.Join(r.write(), r.failed(ctx))
}

// noGPU says why there is no GPU to take where none is named: all of this would last for days on a driver that runs on the CPU. "": there is one.
func (r *run) noGPU() string {
	var devices struct{ Auto struct{ Device, Why string } }
	data, err := os.ReadFile(filepath.Join(r.dir, "devices.json"))
	if r.size.software || r.device != "vulkan" || err != nil || json.Unmarshal(data, &devices) != nil || devices.Auto.Device != "cpu" {
		return ""
	}
	return devices.Auto.Why
}

// measure tunes and measures each preset.
func (r *run) measure(ctx context.Context) {
	dev := []string{"--device", r.device}
	for _, p := range r.size.presets {
		sizes := append(append([]string{"--preset", p.name}, p.flags()...), dev...)
		if r.device != "cpu" { // which has nothing to choose from
			r.command(ctx, "tune-"+p.name+".txt", append([]string{"tune"}, sizes...)...)
			r.command(ctx, "tune-"+p.name+".json", append([]string{"tune", "--show", "--json"}, sizes...)...)
		}
		r.both(ctx, "ops-"+p.name, append([]string{"bench", "ops", "--repeats", fmt.Sprint(r.size.repeats)}, sizes...)...)
		r.both(ctx, "step-"+p.name, append([]string{"bench", "step", "--steps", fmt.Sprint(r.size.repeats), "--trace",
			filepath.Join(r.dir, "trace-"+p.name+".json")}, sizes...)...)
		r.readStep("step-" + p.name + ".json")
	}
}

// build makes vktrain in a folder.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "vktrain")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/vktrain").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building vktrain, which works in the repository's folder: %w\n%s", err, out)
	}
	return path, nil
}

// prepare makes the folder and begins the summary.
func (r *run) prepare(ctx context.Context) error {
	if entries, err := os.ReadDir(r.dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: give another folder with -out", r.dir)
	}
	if err := os.MkdirAll(r.dir, 0o777); err != nil {
		return err
	}
	r.summary = summary{
		System: fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()), Device: r.device, Began: time.Now().UTC(),
		Commands: []command{}, Steps: []stepSummary{},
	}
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		r.summary.Commit = strings.TrimSpace(string(out))
	}
	return nil
}

// both runs a command twice, for its text and for its JSON.
func (r *run) both(ctx context.Context, name string, args ...string) {
	r.command(ctx, name+".txt", args...)
	r.command(ctx, name+".json", append(args, "--json")...)
}

// command runs vktrain; what it prints goes to a file of that name.
func (r *run) command(ctx context.Context, name string, args ...string) bool {
	if ctx.Err() != nil {
		return false
	}
	done := command{Name: name, Args: args}
	fmt.Println("vktrain " + strings.Join(args, " "))
	began := time.Now()
	err := r.exec(ctx, filepath.Join(r.dir, name), args)
	done.Seconds = time.Since(began).Seconds()
	if err != nil {
		done.Error = err.Error()
	}
	r.note(done)
	return err == nil
}

func (r *run) exec(ctx context.Context, file string, args []string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	var said strings.Builder
	c := exec.CommandContext(ctx, r.vktrain, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.Stdout, c.Stderr = out, &said
	err = c.Run()
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
}

func (r *run) note(c command) {
	if c.Error != "" {
		fmt.Fprintf(os.Stderr, "gpurun: %s: %s\n", c.Name, c.Error)
	}
	r.summary.Commands = append(r.summary.Commands, c)
}

// readStep takes a measurement into the summary, if there is one.
func (r *run) readStep(name string) {
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	var s stepSummary
	if err == nil && json.Unmarshal(data, &s) == nil {
		r.summary.Steps = append(r.summary.Steps, s)
	}
}

func (r *run) failed(ctx context.Context) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	var names []string
	for _, c := range r.summary.Commands {
		if c.Error != "" {
			names = append(names, c.Name)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("failed: %s; see %s", strings.Join(names, ", "), filepath.Join(r.dir, "summary.txt"))
	}
	return nil
}

// write makes summary.json and summary.txt.
func (r *run) write() error {
	data, err := json.MarshalIndent(r.summary, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(r.dir, "summary.json"), append(data, '\n'), 0o666),
		os.WriteFile(filepath.Join(r.dir, "summary.txt"), []byte(r.summary.text()), 0o666),
	)
}

func (s summary) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vktrain %s on %s, device %s, %s\n\n", s.Commit, s.System, s.Device, s.Began.Format(time.RFC3339))
	for _, c := range s.Commands {
		state := "ok"
		if c.Error != "" {
			state = c.Error
		}
		fmt.Fprintf(&b, "%-20s %7.1f s  %s\n", c.Name, c.Seconds, state)
	}
	for _, p := range s.Steps {
		fmt.Fprintf(&b, "\n%s on %s: %.1f ms a step, %.0f tokens/s, %.1f GFLOP/s of %.1f (%.1f%%), %d bytes", p.Name, p.Device, p.MsPerStep, p.TokensPerSec,
			p.GFLOPs, p.PeakGFLOPs, 100*p.OfPeak, p.DeviceBytes)
	}
	b.WriteString("\n\n")
	for _, v := range s.verdicts() {
		fmt.Fprintln(&b, v)
	}
	if s.Soak != nil {
		fmt.Fprintf(&b, "soak: %s\n", s.Soak)
	}
	if s.Long != nil {
		fmt.Fprintf(&b, "long training: %s\n", s.Long)
	}
	return b.String()
}
