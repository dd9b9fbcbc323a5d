package train

import "github.com/vktrain/vktrain/internal/chart"

// PlotLoss draws the training loss, the validation loss and, if there is one, the floor over the steps, as a PNG.
func PlotLoss(title string, lines []Metrics, floor *Floor) ([]byte, error) {
	training := chart.Line{Name: "training", Style: chart.StyleOf(0)}
	validation := chart.Line{Name: "validation", Style: chart.StyleOf(1), Points: true}
	training.Style.Thin = true
	for _, m := range lines {
		training.X, training.Y = append(training.X, float64(m.Step)), append(training.Y, m.Loss)
		if m.Evaluated {
			validation.X, validation.Y = append(validation.X, float64(m.Step)), append(validation.Y, m.ValLoss)
		}
	}
	panel := chart.Panel{
		X: chart.Axis{Label: "step", Whole: true}, Y: chart.Axis{Label: "loss (nats per token)"}, Lines: []chart.Line{training, validation},
	}
	if floor != nil {
		panel.Levels = []chart.Level{{Name: "floor: no model can be lower", At: floor.Realised}}
	}
	return chart.Figure{Title: title, Panels: []chart.Panel{panel}}.PNG()
}

// Floor is the entropy of a source that is known exactly, which no model's loss can be under, in nats per token.
type Floor struct {
	Expected float64 // the source's entropy
	Realised float64 // the mean surprisal of the validation text under the source: what a perfect model's loss on it would be
}
