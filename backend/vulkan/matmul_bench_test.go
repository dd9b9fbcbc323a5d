//go:build cgo && unix

package vulkan

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/graph"
)

// cpuSeconds is what the process has taken of all cores: on drivers that run on the CPU it does not depend on what else the machine does.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Seconds()
}

// A linear layer's product (NT) and its gradients' (NN and TN), on cubes and on a small model's shapes: rows (tokens), columns, inner dimension.
func BenchmarkMatMul(b *testing.B) {
	dev := openTest(b, Options{})
	for _, o := range []graph.MatMulAttr{{}, {TransB: true}, {TransA: true}} {
		for _, s := range [][3]int{{512, 512, 512}, {1024, 1024, 1024}, {512, 688, 256}, {512, 256, 688}, {688, 256, 512}, {512, 2048, 256}} {
			name := map[bool]string{false: "N", true: "T"}
			b.Run(fmt.Sprintf("%s%s/%dx%dx%d", name[o.TransA], name[o.TransB], s[0], s[1], s[2]), func(b *testing.B) {
				m, n, k := s[0], s[1], s[2]
				shape := func(rows, cols int, swap bool) []int {
					if swap {
						rows, cols = cols, rows
					}
					return []int{rows, cols}
				}
				build := graph.NewBuilder()
				x, y := build.Input("x", graph.F32, shape(m, k, o.TransA)...), build.Input("y", graph.F32, shape(k, n, o.TransB)...)
				z := build.MatMul(x, y, nil, nil, o)
				build.Output("z", z)
				p := build.Build("matmul")
				e := compile(b, dev, p, newStore(b, dev, p))
				require.NoError(b, e.Feed("x", repeated(1, m*k)))
				require.NoError(b, e.Feed("y", repeated(1, n*k)))
				dst := make([]byte, 4*m*n)
				run := func() {
					ticket, err := e.Submit()
					require.NoError(b, err)
					require.NoError(b, e.Fetch(ticket, "z", dst))
				}
				run() // the driver compiles at the first run
				b.ResetTimer()
				before := cpuSeconds(b)
				for b.Loop() {
					run()
				}
				flops := 2 * float64(m) * float64(n) * float64(k) * float64(b.N)
				b.ReportMetric(flops/(cpuSeconds(b)-before)/1e9, "GFLOP/CPU-s")
				b.ReportMetric(flops/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
