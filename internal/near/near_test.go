package near

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeys(t *testing.T) {
	known := []string{"model.d_model", "model.n_heads", "model.n_kv_heads", "data.path", "steps", "lr", "min_lr", "--device"}
	for _, c := range []struct {
		key  string
		want []string
	}{
		{"stesp", []string{"steps"}},
		{"step", []string{"steps"}},
		{"d_model", []string{"model.d_model"}},
		{"data.n_heads", []string{"model.n_heads"}},
		{"--devise", []string{"--device"}},
		{"rl", []string{"lr"}},
		{"zzz", nil},
		{"", nil},
	} {
		require.Equal(t, c.want, Keys(c.key, known), c.key)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		require.Equal(t, c.want, editDistance(c.a, c.b), "%s %s", c.a, c.b)
	}
}
