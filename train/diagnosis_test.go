package train

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A line with a deep model's diagnosis is longer than a reader's usual buffer, and comes back as it was.
func TestADiagnosisComesBackFromItsLine(t *testing.T) {
	normed := Number(1.5)
	stream := Stream{Variance: 2, Largest: slices.Repeat([]Number{123.4567}, 100), Overflow: 3}
	layer := LayerDiagnosis{
		Attention: Sublayer{Stream: stream, Output: 0.5, Normed: &normed}, MLP: Sublayer{Stream: stream, Output: 0.25},
		Logits: Attention{LargestLogit: 12, Entropy: 1.25, OneHot: 0.125}, Angle: 0.25,
		Parameters: Parameters{GradNorm: 7, Kinds: map[string]ParameterStats{"mlp.up_proj.weight": {GradNorm: 1, Norm: 2, UpdateRatio: 3, UpdateCos: -0.5}}},
		Gains:      []GainStats{{Name: "mlp.input_norm.weight", Mean: 1, Min: 0.5, Max: 1.5}},
	}
	d := Diagnosis{Embedding: stream, Layers: slices.Repeat([]LayerDiagnosis{layer}, 96), Final: stream, Outside: Parameters{GradNorm: 1, Kinds: map[string]ParameterStats{}},
		Bound: &GradientBound{Hidden: 1, Output: 2, GradNorm: 3, Bound: 4}}
	want := Metrics{Step: 1, Loss: 2, Diagnosis: &d}
	var file bytes.Buffer
	require.NoError(t, WriteMetrics(&file, want))
	require.Greater(t, file.Len(), 100_000)
	got, err := ReadMetrics(&file)
	require.NoError(t, err)
	require.Equal(t, []Metrics{want}, got)

	d.Layers[0].Angle, d.Embedding.Largest[0] = Number(math.NaN()), Number(math.Inf(1))
	require.NoError(t, WriteMetrics(&file, want))
	got, err = ReadMetrics(&file)
	require.NoError(t, err)
	require.True(t, math.IsNaN(float64(got[0].Diagnosis.Layers[0].Angle)))
	require.True(t, math.IsNaN(float64(got[0].Diagnosis.Embedding.Largest[0])))
	require.Nil(t, got[0].Diagnosis.Layers[0].MLP.Normed)
}
