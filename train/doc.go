// Package train is a training run, from a config to a checkpoint that writes text.
//
//	cfg, err := train.FromPreset("nano") // or Load of a file's and a command line's assignments
//	t, err := train.New(ctx, cfg, dev)   // text, tokenizer, initial parameters, compiled programs
//	result, err := t.Run(ctx, train.Hooks{Step: func(m train.Metrics) error { ... }})
//	err = t.Save(dir)                    // OpenCheckpoint reads it
//
// The parts can be used without the whole: the programs ([StepProgram] and so on), [Stepper], [Evaluator], [Generator], [Sampler],
// [Schedule], [Dataset], and [Folder], which is what a run leaves on disk.
//
// # Determinism
//
// There is no global state. A run is a function of its config, its text, and the device: the same three give the same bits in every
// parameter and every metric but the two times. [Trainer.Config] has every default filled in, and written as YAML it is the whole
// recipe. The order of the data and every random draw follow from the seed by counters (package rng), so that a place in a run is a
// few numbers: the step, [Dataset.Position], and the moments in the store.
//
// # Time
//
// Nothing waits for the device within a step, and a step's scalars are read when the next step has been submitted: [Hooks].Step comes one step late,
// except where an evaluation, a sample or a [Control] needs the step to be over.
//
// # Ownership
//
// Whoever opens the backend closes it, after what was made on it. A Trainer, Stepper, Evaluator or Generator is used by one goroutine.
package train
