package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/checkpoint"
	"github.com/vktrain/vktrain/train"
)

// runsFolder is where runs go that are given no folder.
const runsFolder = "runs"

// trainFlags are those of `vktrain train`.
type trainFlags struct {
	device    deviceFlags // its name is the config's
	out       string
	overwrite bool
	set       []string
	window    windowFlags
}

// configFlag gives a key of the config its value.
type configFlag struct{ flag, key, usage string }

// trainConfigFlags are those of `vktrain train`.
var trainConfigFlags = []configFlag{
	{"preset", "model.preset", "model `NAME`: nano, tiny, small, gpt2, peri-400m, peri-1.5b or peri-3.2b"},
	{"data", "data.path", "text file or folder of them at `PATH`; the built-in stories without it"},
	{"steps", "steps", "train for `N` steps"},
	{"seed", "seed", "`N` of the initial parameters, the data's order and the samples"},
	{"precision", "precision", "`FORMAT` of activations: auto (bf16 on a GPU, else f32), f32, bf16 or f16"},
	{"masters", "masters", "`FORMAT` of the matrices that AdamW updates: f32, or bf16, rounded stochastically, in half the memory"},
	{"moments", "moments", "`WHERE` AdamW's moments are: device, or host, in the host's memory, for a card that has little (slower)"},
	{"recompute", "recompute", "save memory and take longer by computing activations `TWICE`: none, attention or block"},
	{"device", "device", "`DEVICE` to train on: auto, cpu, vulkan or vulkan:N, with an N (or UUID, or part of a name) that `vktrain devices` lists"},
}

func newTrainCommand() *cobra.Command {
	var f trainFlags
	c := &cobra.Command{
		Use:   "train [CONFIG.yaml]",
		Short: "Train a model; without arguments a small one on built-in stories, in about two minutes",
		Long: `Train a model. Without arguments: the nano model on built-in stories, whose entropy is known, on the best device.

Settings come from the preset, then CONFIG.yaml, then the flags, then --set; the run's folder gets a config.yaml
with every one of them, which gives the same run again. With --set tasks.files=FILE,... the trained
model is scored on multiple-choice tasks (see vktrain eval). Ctrl-C ends a run after the step or micro-batch it is in, with a checkpoint.`,
		Args: arguments(0, 1, "at most one CONFIG.yaml"),
		RunE: func(c *cobra.Command, args []string) error {
			all, err := assignments(c, trainConfigFlags, args, f.set)
			if err != nil {
				return err
			}
			return runTraining(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), all, f)
		},
	}
	for _, k := range trainConfigFlags {
		c.Flags().String(k.flag, "", k.usage)
	}
	f.device.addOptions(c)
	f.device.addTuning(c)
	c.Flags().StringVar(&f.out, "out", "", "`DIR` for the run; a fresh folder in runs without it")
	c.Flags().BoolVar(&f.overwrite, "overwrite", false, "replace the run that DIR holds")
	f.window.add(c)
	c.Flags().StringArrayVar(&f.set, "set", nil, "`KEY=VALUE` of the config, such as model.d_model=128; may be repeated")
	return c
}

// assignments collects the config's from the file, the flags and --set, in the order in which the later ones win.
func assignments(c *cobra.Command, flags []configFlag, args, set []string) ([]train.Assignment, error) {
	var all []train.Assignment
	for _, path := range args {
		file, err := train.ReadConfig(path)
		if err != nil {
			return nil, err
		}
		if preset := c.Flags().Lookup("preset"); preset.Changed {
			if err := checkPreset(path, file, preset.Value.String()); err != nil {
				return nil, err
			}
		}
		all = append(all, file...)
	}
	for _, k := range flags {
		if flag := c.Flags().Lookup(k.flag); flag.Changed {
			all = append(all, train.Assignment{Key: k.key, Value: flag.Value.String()})
		}
	}
	for _, s := range set {
		a, err := train.ParseAssignment(s)
		if err != nil {
			return nil, usagef("--set: %v", err)
		}
		if a.Value == "" {
			return nil, usagef("--set: %s is empty: give it a value, or leave it out", a.Key)
		}
		all = append(all, a)
	}
	return all, nil
}

// checkPreset refuses a preset whose sizes the file would override all the same.
func checkPreset(path string, file []train.Assignment, preset string) error {
	for _, a := range file {
		if a.Key == "model.preset" && a.Value == preset {
			return nil
		}
	}
	for _, a := range file {
		if strings.HasPrefix(a.Key, "model.") && a.Key != "model.preset" {
			return usagef("--preset %s would be overridden by %s, which sets %s: leave one of the two out", preset, path, a.Key)
		}
	}
	return nil
}

func runTraining(ctx context.Context, out, progressOut io.Writer, all []train.Assignment, f trainFlags) (err error) {
	cfg, err := train.Load(all)
	if err != nil {
		return err
	}
	f.device.name = cfg.Device
	if err := f.device.check(); err != nil {
		return err
	}
	if err := f.window.check(); err != nil {
		return err
	}
	if err := checkFolder(f); err != nil {
		return err
	}
	dev, why, err := f.device.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	trainer, err := train.New(ctx, cfg, dev)
	if errors.Is(err, context.Canceled) {
		row(out, "interrupted", "before the first step: there is no run")
		return errInterrupted
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, trainer.Close()) }()
	folder, err := openFolder(f, trainer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if err := folder.WriteConfig(trainer.Config()); err != nil {
		return err
	}
	if err := writeHeader(out, dev.Info(), why, trainer, folder); err != nil {
		return err
	}
	bar := newProgress(progressOut, trainer.Config().Steps)
	view, ctxOfRun, err := f.window.open(ctx, bar, dev, trainer, folder)
	if err != nil {
		return err
	}
	defer view.close()
	if err := runSteps(ctxOfRun, out, bar, trainer, folder, view); err != nil {
		return err
	}
	if err := writeSample(ctx, out, trainer); err != nil {
		return err
	}
	view.stay(ctx, out)
	return nil
}

func checkFolder(f trainFlags) error {
	if f.out == "" {
		return train.CheckPlace(runsFolder)
	}
	err := train.CheckFolder(f.out)
	switch {
	case f.overwrite && errors.Is(err, train.ErrHasRun):
		return nil
	case errors.Is(err, train.ErrHasRun):
		return fmt.Errorf("%w: give another --out, or --overwrite to replace it", err)
	}
	return err
}

func openFolder(f trainFlags, t *train.Trainer) (*train.Folder, error) {
	if f.out != "" {
		return train.CreateFolder(f.out, f.overwrite)
	}
	return train.FreshFolder(runsFolder, t.Config().Model.Preset+"-"+t.Dataset().Name)
}

func writeHeader(w io.Writer, info backend.Info, why string, t *train.Trainer, folder *train.Folder) error {
	cfg, d := t.Config(), t.Dataset()
	first, err := d.First()
	if err != nil {
		return err
	}
	if why != "" {
		why = "; auto: " + why
	}
	row(w, "device", "%s%s", info, oneLine(why))
	row(w, "model", "%s: %s parameters, %d layers of width %d, %s norms, qk_norm %s, in %s", cfg.Model.Preset, grouped(int64(cfg.Model.NumParams())),
		cfg.Model.NLayers, cfg.Model.DModel, cfg.Model.Placement, cfg.Model.QKNorm, cfg.Precision)
	row(w, "data", "%s: %s training and %s validation tokens, %s of %d tokens, %.2f bytes a token", d.Name, grouped(int64(d.TrainTokens)), grouped(int64(d.ValTokens)),
		d.Tokenizer.Kind(), d.Tokenizer.VocabSize(), d.BytesPerToken)
	if d.Floor != nil {
		row(w, "floor", "%.4f nats a token: no model can do better; unigrams reach %.4f", d.Floor.Expected, d.Unigram)
	} else {
		row(w, "unigrams", "%.4f nats a token: what the frequencies of the tokens alone give", d.Unigram)
	}
	if cfg.Warmup > cfg.Steps {
		row(w, "warning", "the warm-up of %d steps is longer than the run: the learning rate gets to %.3g, not to %g", cfg.Warmup, cfg.LearningRates().At(cfg.Steps), cfg.LR)
	}
	if len(d.Skipped) > 0 {
		row(w, "skipped", "%d files that are no text, such as %s", len(d.Skipped), d.Skipped[0])
	}
	row(w, "first text", "%q", shorten(first, 90))
	start := t.Startup()
	row(w, "start", "%.2f s to the first step: data %.2f, parameters %.2f, programs %.2f", time.Since(processStart).Seconds(), start.Data.Seconds(),
		start.Parameters.Seconds(), start.Programs.Seconds())
	row(w, "run", "%s: %d steps of %s tokens", folder.Dir, cfg.Steps, grouped(int64(cfg.TokensPerStep())))
	return nil
}

// shorten cuts a text to n characters.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-3]) + "..."
	}
	return s
}

func runSteps(ctx context.Context, out io.Writer, bar *progress, t *train.Trainer, folder *train.Folder, view *runWindow) error {
	stop := context.AfterFunc(ctx, func() { bar.say("stopping; once more to kill") })
	saved := false
	result, err := t.Run(ctx, train.Hooks{
		Step: func(m train.Metrics) error {
			bar.step(m)
			view.step(m)
			return folder.Append(m)
		},
		Sample: func(step int, text string) error {
			bar.say("sample at step %d: %s", step, shorten(strings.Join(strings.Fields(text), " "), 200))
			return nil
		},
		Score: func() error {
			saved = true
			return t.Save(folder.Dir)
		},
		Control: view.control(),
	})
	stop()
	bar.end()
	if err == nil && result.Steps > 0 && !saved {
		if err := t.Save(folder.Dir); err != nil {
			return err
		}
	}
	if plotErr := folder.WritePlot(filepath.Base(folder.Dir), t.Dataset().Floor); plotErr != nil {
		bar.say("%v", plotErr) // the run has its model, or an error of its own
	}
	if err != nil {
		return fmt.Errorf("%w (%s has its config and metrics, and %s)", err, folder.Dir, checkpointIn(folder.Dir))
	}
	if result.Steps == 0 {
		row(out, "interrupted", "before the first step: no checkpoint")
		return errInterrupted
	}
	writeSummary(out, t, folder, result)
	if result.Interrupted {
		return errInterrupted
	}
	return nil
}

// checkpointIn says what checkpoint a run that has failed has left: one that was asked for in its window, if any.
func checkpointIn(dir string) string {
	info, err := checkpoint.ReadInfo(dir)
	if err != nil {
		return "no checkpoint"
	}
	return fmt.Sprintf("the checkpoint of step %d", info.Step)
}

func writeSummary(w io.Writer, t *train.Trainer, folder *train.Folder, r train.Result) {
	d := t.Dataset()
	switch steps := t.Config().Steps; {
	case r.Interrupted && r.Steps == steps:
		row(w, "interrupted", "in the evaluation after the last step")
	case r.Interrupted:
		row(w, "interrupted", "after step %d of %d", r.Steps, steps)
	}
	row(w, "trained", "%d steps, %s tokens in %.0f s", r.Steps, grouped(r.Tokens), r.Elapsed.Seconds())
	if r.Skipped > 0 {
		row(w, "left out", "%d of these steps: their gradients overflowed in f16; the loss scale was %g in the last step, loss_scale sets the first",
			r.Skipped, r.Last.LossScale)
	}
	if r.ValLoss == r.ValLoss {
		text := fmt.Sprintf("%.4f nats a token, %.4f bits a byte", r.ValLoss, d.BitsPerByte(r.ValLoss))
		if d.Floor == nil {
			text += fmt.Sprintf("; unigrams: %.4f", d.Unigram)
		}
		row(w, "val loss", "%s", text)
		if d.Floor != nil {
			row(w, "floor", "%.4f on this validation text, %.4f by expectation: the loss is %.1f%% above it", d.Floor.Realised, d.Floor.Expected,
				100*(r.ValLoss/d.Floor.Realised-1))
		}
	}
	for _, task := range r.Last.Tasks {
		text := fmt.Sprintf("%s: acc %s", task.Task, share(task.Acc, task.AccStderr))
		if task.AccNorm != nil {
			text += ", acc_norm " + share(*task.AccNorm, task.AccNormStderr)
		}
		row(w, "task", "%s; chance %.4f; %s", text, task.Chance, counted(task.N, "document"))
	}
	if len(r.Last.Tasks) > 0 {
		row(w, "benchmarks", "%s", averageText(r.Last.Tasks))
	}
	row(w, "checkpoint", "%s: vktrain generate %s", folder.Dir, quoteIfNeeded(folder.Dir))
}

// quoteIfNeeded lets a path with spaces be pasted into a shell.
func quoteIfNeeded(path string) string {
	if strings.ContainsAny(path, " \t'\"$&;()") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// writeSample ends a run with a text.
func writeSample(ctx context.Context, w io.Writer, t *train.Trainer) error {
	text, err := t.Write(ctx, train.Continuation{Tokens: 160, Sampler: train.Sampler{Temperature: 0.8}, Seed: t.Config().Seed})
	if errors.Is(err, context.Canceled) {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(text))
	return err
}
