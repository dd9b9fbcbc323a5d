package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/vktrain/vktrain/internal/near"
	"github.com/vktrain/vktrain/tasks"
	"github.com/vktrain/vktrain/train"
)

// Metric is a figure of a run.
type Metric struct {
	Name  string `json:"name"`
	Label string `json:"label"` // of a column or an axis
	Unit  string `json:"unit"`  // empty for a number of things
	Text  string `json:"text"`  // what it is, in a sentence

	Format string `json:"format"` // of fmt
}

// Names of figures that code goes by.
const (
	MetricValLoss     = "val_loss"
	MetricBitsPerByte = "bits_per_byte"
	MetricAverage     = "benchmark_average"

	metricInitialLoss = "initial_loss"
)

// metrics are the figures of a run. Those of diagnosed steps are there only where the config has such steps.
var metrics = []Metric{
	{MetricValLoss, "val loss", "nats/token", "Mean loss over the validation text after the last step.", "%.4f"},
	{MetricBitsPerByte, "bits/byte", "bits/byte", "The validation loss in bits per byte of text, which compares models with different tokenizers.", "%.4f"},
	{MetricAverage, "benchmarks", "", "Mean accuracy over the tasks of tasks.files: acc_norm where lm-evaluation-harness has it for the task, else acc.", "%.4f"},
	{"best_val_loss", "best val loss", "nats/token", "The lowest validation loss of any evaluation.", "%.4f"},
	{"above_floor", "above floor", "nats/token", "The validation loss less the entropy of its text, where the text's source is known.", "%.4f"},
	{"train_loss", "train loss", "nats/token", "Mean loss of the last tenth of the steps, z-loss included.", "%.4f"},
	{metricInitialLoss, "initial loss", "nats/token", "The validation loss before the first step.", "%.4f"},
	{"grad_norm", "grad norm", "", "Mean norm of the gradient over the last tenth of the steps, before clipping.", "%.4g"},
	{"grad_norm_max", "max grad norm", "", "Largest norm of the gradient, before clipping.", "%.4g"},
	{"spikes", "spikes", "", "Steps whose gradient's norm is over 5 times the median of the 20 steps before them.", "%.3g"},
	{"skipped", "overflows", "", "Steps that overflowed in f16 and were left out.", "%.3g"},
	{"final_variance", "final variance", "", "Variance of the residual stream after the last layer, in the last diagnosed step.", "%.4g"},
	{"max_activation", "max |x|", "", "Largest magnitude in the residual stream, of all diagnosed steps; float16 ends at 65,504.", "%.4g"},
	{"max_logit", "max logit", "", "Largest attention logit of all diagnosed steps.", "%.4g"},
	{"attention_entropy", "entropy", "nats", "Entropy of attention, mean over layers, in the last diagnosed step.", "%.3f"},
	{"one_hot", "one-hot", "", "Share of attention's rows that look at one key alone, mean over layers, in the last diagnosed step.", "%.3f"},
	{"initial_variance", "initial variance", "", "Variance of the residual stream after the last layer, with the initial parameters.", "%.4g"},
	{"initial_final_layer_grad_norm", "initial last down_proj grad", "", "Norm of the gradient of the last layer's down projection, with the initial parameters, before clipping.", "%.4g"},
	{"initial_layer_grad_ratio", "initial grad unevenness", "", "Largest over smallest gradient norm of a layer, with the initial parameters: 1 is even.", "%.3g"},
	{"layer_grad_ratio", "grad unevenness", "", "Largest over smallest gradient norm of a layer, in the last diagnosed step: 1 is even.", "%.3g"},
	{"final_layer_grad_norm", "last down_proj grad", "", "Norm of the gradient of the last layer's down projection, mean over the diagnosed steps, before clipping.", "%.4g"},
	{MetricStepMs, "step", "ms", "Median time of a step; with cost alone.", "%.1f"},
	{metricTokensPerSec, "tokens/s", "tokens/s", "Tokens of a step over its median time; with cost alone.", "%.0f"},
	{MetricStepMemory, "step memory", "MiB", "Parameters, moments, accumulated gradients, arena, scratch memory and inputs of the programs of a step, as the device plans them.", "%.1f"},
	{MetricRunMemory, "run memory", "MiB", "That with the programs that evaluate, generate, score and diagnose.", "%.1f"},
	{MetricResident, "process memory", "MiB", "The most that the process held during the run, on Linux and with one run at a time; with cost alone.", "%.0f"},
	{MetricFLOPs, "FLOPs/token", "FLOP/token", "Matrix products of a training step: 6 for each weight and token, 6 N T H h for causal attention (Chowdhery et al. 2022). Norms are not in it.", "%.4g"},
	{MetricNorms, "norms/token", "numbers/token", "Numbers that norms go over in a training step, forward and backward, those of queries and keys too.", "%.4g"},
	{MetricTraffic, "bytes/token", "B/token", "What all operators of a training step read and write, each operand once.", "%.4g"},
}

// DefaultMetrics are those of a table that names none.
var DefaultMetrics = []string{MetricValLoss, MetricBitsPerByte}

// Metrics lists the figures that there are.
func Metrics() []Metric { return slices.Clone(metrics) }

// taskMetric names a task's accuracy: acc_norm.piqa.
func taskMetric(of tasks.Metric, task string) string { return string(of) + "." + task }

// taskOf is the task of a name that taskMetric gives.
func taskOf(metric string) (task string, ok bool) {
	of, task, _ := strings.Cut(metric, ".")
	return task, task != "" && (of == string(tasks.Acc) || of == string(tasks.AccNorm))
}

// MetricNamed finds a figure. Those of tasks are acc.TASK and acc_norm.TASK.
func MetricNamed(name string) (Metric, error) {
	if task, isTask := taskOf(name); isTask {
		of := strings.TrimSuffix(name, "."+task)
		return Metric{name, task + " " + of, "", fmt.Sprintf("Share of the documents of the task %s whose right choice the model takes (%s).", task, of), "%.4f"}, nil
	}
	var names []string
	for _, m := range metrics {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	if meant := near.Keys(name, names); len(meant) > 0 {
		return Metric{}, fmt.Errorf("there is no %q: did you mean %s?", name, strings.Join(meant, " or "))
	}
	return Metric{}, fmt.Errorf("there is no %q: there are %s, and acc.TASK and acc_norm.TASK of the config's tasks", name, strings.Join(names, ", "))
}

// Figures are a run's figures by their metric's name. Those that a run lacks, or that are not finite, are absent.
type Figures map[string]float64

func (f Figures) set(name string, x float64) {
	if !math.IsNaN(x) && !math.IsInf(x, 0) {
		f[name] = x
	}
}

// measure takes the figures of a run's lines. A run that broke off has those up to its end.
func measure(lines []train.Metrics) Figures {
	f := Figures{}
	if len(lines) == 0 {
		return f
	}
	best, last := math.Inf(1), lines[len(lines)-max(1, len(lines)/10):]
	var losses, norms []float64
	largest, skipped := math.Inf(-1), 0.0
	for _, m := range lines {
		if m.Evaluated {
			best = min(best, m.ValLoss)
		}
		if m.Skipped {
			skipped++
			continue
		}
		largest = max(largest, m.GradNorm)
	}
	for _, m := range last {
		losses = append(losses, m.Loss)
		if !m.Skipped {
			norms = append(norms, m.GradNorm)
		}
	}
	f.set("best_val_loss", best)
	f.set("train_loss", stat.Mean(losses, nil))
	f.set("grad_norm", stat.Mean(norms, nil))
	f.set("grad_norm_max", largest)
	f.set("spikes", float64(spikes(lines)))
	f.set("skipped", skipped)
	f.diagnoses(lines)
	return f
}

const (
	spikeWindow = 20
	spikeFactor = 5
)

// spikes counts steps whose gradient's norm is over spikeFactor times the median of the spikeWindow taken steps before them.
func spikes(lines []train.Metrics) int {
	n := 0
	var before []float64
	for _, m := range lines {
		if m.Skipped {
			continue
		}
		if len(before) == spikeWindow {
			sorted := slices.Sorted(slices.Values(before))
			if median := (sorted[spikeWindow/2-1] + sorted[spikeWindow/2]) / 2; m.GradNorm > spikeFactor*median {
				n++
			}
			before = before[1:]
		}
		before = append(before, m.GradNorm)
	}
	return n
}

// lastDown is the parameter of final_layer_grad_norm.
const lastDown = "mlp.down_proj.weight"

// diagnoses takes the figures of diagnosed steps.
func (f Figures) diagnoses(lines []train.Metrics) {
	activation, logit := math.Inf(-1), math.Inf(-1)
	var grads []float64
	var last *train.Diagnosis
	for _, m := range lines {
		d := m.Diagnosis
		if d == nil || len(d.Layers) == 0 {
			continue
		}
		if m.Step == 1 {
			f.initial(d)
		}
		last = d
		top := func(s train.Stream) {
			if len(s.Largest) > 0 {
				activation = max(activation, float64(s.Largest[0]))
			}
		}
		top(d.Embedding)
		for _, l := range d.Layers {
			top(l.Attention.Stream)
			top(l.MLP.Stream)
			logit = max(logit, float64(l.Logits.LargestLogit))
		}
		if k, ok := lastLayer(d).Kinds[lastDown]; ok {
			grads = append(grads, float64(k.GradNorm))
		}
	}
	if last == nil {
		return
	}
	entropy, oneHot, n := 0.0, 0.0, float64(len(last.Layers))
	for _, l := range last.Layers {
		entropy, oneHot = entropy+float64(l.Logits.Entropy), oneHot+float64(l.Logits.OneHot)
	}
	f.set("final_variance", float64(lastLayer(last).MLP.Variance))
	f.set("max_activation", activation)
	f.set("max_logit", logit)
	f.set("attention_entropy", entropy/n)
	f.set("one_hot", oneHot/n)
	f.set("final_layer_grad_norm", stat.Mean(grads, nil))
	f.set("layer_grad_ratio", gradRatio(last))
}

// initial takes the figures of the first step, whose diagnosis is of the initial parameters.
func (f Figures) initial(d *train.Diagnosis) {
	f.set("initial_variance", float64(lastLayer(d).MLP.Variance))
	if k, ok := lastLayer(d).Kinds[lastDown]; ok {
		f.set("initial_final_layer_grad_norm", float64(k.GradNorm))
	}
	f.set("initial_layer_grad_ratio", gradRatio(d))
}

func lastLayer(d *train.Diagnosis) train.LayerDiagnosis { return d.Layers[len(d.Layers)-1] }

// gradRatio is the largest gradient norm of a layer over the smallest.
func gradRatio(d *train.Diagnosis) float64 {
	least, most := math.Inf(1), math.Inf(-1)
	for _, l := range d.Layers {
		least, most = min(least, float64(l.GradNorm)), max(most, float64(l.GradNorm))
	}
	return most / least
}
