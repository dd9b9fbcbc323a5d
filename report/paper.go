package report

// PaperRow is a row of table 1 of Kim et al. 2025 (Peri-LN, arXiv 2502.02732): means of five seeds; what Sd holds is in brackets there, its divisor not stated.
type PaperRow struct {
	Size, Placement string
	Mean            [5]float64 // by PaperTasks, accuracy in percent
	Sd              [5]float64
	Average         float64 // of the tasks
	Loss            float64 // on C4, nats per token
	Tuned           float64 // average of the tasks after supervised fine-tuning
}

// PaperTasks are the benchmarks of PaperRow.
var PaperTasks = [5]string{"ARC-Easy", "HellaSwag", "PIQA", "SIQA", "WinoGrande"}

// PaperTable is that table.
var PaperTable = []PaperRow{
	{"400M", "post", [5]float64{35.70, 28.91, 62.26, 34.48, 50.88}, [5]float64{1.09, .16, .73, 1.04, .75}, 42.45, 7.46, 46.44},
	{"400M", "pre", [5]float64{54.87, 34.17, 68.79, 39.73, 50.88}, [5]float64{1.63, 1.66, 1.34, .59, 2.35}, 49.69, 3.43, 49.96},
	{"400M", "peri", [5]float64{57.51, 37.46, 69.48, 40.64, 52.74}, [5]float64{.81, .34, .39, .51, .67}, 51.57, 3.34, 51.96},
	{"1.5B", "post", [5]float64{42.92, 31.69, 66.72, 35.84, 50.30}, [5]float64{.93, .41, .40, .61, 1.87}, 45.49, 5.38, 48.95},
	{"1.5B", "pre", [5]float64{61.51, 39.88, 71.41, 41.23, 54.51}, [5]float64{1.22, 1.53, .88, .97, 2.07}, 53.71, 3.29, 53.89},
	{"1.5B", "peri", [5]float64{66.17, 43.94, 73.63, 42.34, 56.64}, [5]float64{.21, .34, .24, .83, .44}, 56.55, 3.18, 56.94},
	{"3.2B", "post", [5]float64{45.30, 33.59, 66.45, 35.82, 51.10}, [5]float64{3.23, .44, 2.86, 1.09, 1.60}, 46.45, 4.43, 49.33},
	{"3.2B", "pre", [5]float64{65.24, 44.23, 73.86, 42.68, 57.42}, [5]float64{2.32, 2.32, 1.19, .07, 2.51}, 56.69, 3.20, 57.08},
	{"3.2B", "peri", [5]float64{68.73, 46.99, 74.31, 43.00, 59.76}, [5]float64{.57, .21, .41, .73, .78}, 58.56, 3.11, 59.02},
}

// PaperCaveats say what may be compared with the table, and what may not.
var PaperCaveats = []string{
	"May be compared: the order of the placements. Within one of their sizes, the data, the steps and the settings are the same for all three; in ours they are between variants that differ in the placement alone. " +
		"So may whether a difference is large against the spread over the seeds.",
	"May not be compared: a loss of ours with one of theirs. Theirs are of models with 0.4 to 3.2 billion parameters after 30.2 billion tokens, measured on C4. A loss per token depends on the text and on the tokenizer, " +
		"and how far placements lie apart depends on the size, the steps and the learning rate. The same order here says that the effect is there at this size, another order that it is not seen here; neither says that the paper is right or wrong.",
	"Their losses and accuracies are means of five seeds with a spread whose divisor they do not state; ours have the sample standard deviation (divisor n - 1) over the seeds that did not diverge.",
}
