// Package experiment compares configs: a matrix of them times seeds, trained in any order on any number of devices, and what their figures say.
//
//	e, err := experiment.Read("placement.yaml")
//	m, err := e.Matrix()                              // combinations of variants, and their runs
//	results, err := experiment.Execute(ctx, m, options)// skips what is finished
//	results.Table().Text(os.Stdout)
//
// # The experiment file
//
//	question: Which placement of the norms reaches the lower loss?
//	base:                                   # keys of a training config, over its preset
//	  model.preset: nano
//	  steps: 200
//	axes:                                   # every combination of their variants is trained
//	  model.placement: [pre, peri]          # a key with its values
//	  qk:                                   # or variants with a name each and their settings
//	    none: {model.qk_norm: none}
//	    l2: {model.qk_norm: l2, qk_scale_percentile: 97.5}
//	exclude: [{model.placement: pre, qk: l2}]   # combinations that are left out; only: those that alone are trained
//	seeds: 5                                # 1 to 5, or a list
//	paired_with: {model.placement: pre}     # what each other combination is compared with, at the same seed
//	diverged: above_initial                 # [Criterion]
//	metrics: [val_loss, bits_per_byte]      # of the table: [Metrics]
//	cost: 20                                # times are figures too, and 20 steps of each combination are timed in turns ([CostFile])
//
// # What is on the disk
//
// Each run has its folder, OUT/runs/ID, as `vktrain train` leaves it, and result.json once it is finished ([RunResult]). OUT/results.json
// ([Results]) and the tables follow from these alone: they have the same bits for any order of the runs, any number of jobs and any
// interruption, since nothing in them depends on time unless the experiment asks for its cost. A run that was cut off is trained again from its start.
//
// # Statistics
//
// Spreads are sample standard deviations (the divisor is n - 1) over the seeds. A difference is paired: of two combinations at the same seed,
// which share the data's order and the initial values of the parameters that they share. Diverged runs are counted and shown; they are in no
// mean, so that a mean beside a count of diverged runs is that of the lucky ones.
package experiment
