package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/bench"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/model"
	"github.com/vktrain/vktrain/train"
)

// benchMatMulFlags are those of `vktrain bench matmul`.
type benchMatMulFlags struct {
	device                   deviceFlags
	sizes, orders, precision []string
	repeats                  int
	json                     bool
}

func newBenchMatMulCommand() *cobra.Command {
	var f benchMatMulFlags
	c := &cobra.Command{
		Use:   "matmul",
		Short: "Measure matrix products by themselves",
		Long: `Measure products of matrices of random numbers by themselves, (M, K) times (K, N), beside the peak of the device in float32 FMAs.

The orders are those of training: a layer (NT), its gradient with respect to its input (NN), and with respect to its weights (TN).`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return benchMatMul(c.Context(), c.OutOrStdout(), f)
		},
	}
	f.device.add(c)
	f.device.addTuning(c)
	c.Flags().StringSliceVar(&f.sizes, "size", []string{"1024"}, "`N` or MxNxK,...")
	c.Flags().StringSliceVar(&f.orders, "order", bench.MatMulOrders(), "`ORDER`,... of NN, NT, TN")
	c.Flags().StringSliceVar(&f.precision, "precision", []string{train.PrecisionAuto}, "operands in `FORMAT`,... of "+strings.Join(train.PrecisionNames(), ", "))
	c.Flags().IntVar(&f.repeats, "repeats", 7, "measure each `N` times")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return c
}

// parseDims reads N, or MxNxK.
func parseDims(s string) (bench.Dims, error) {
	words := strings.Split(s, "x")
	var n []int
	for _, w := range words {
		v, err := strconv.Atoi(w)
		if err != nil || v < 1 || v > model.MaxElems {
			return bench.Dims{}, usagef("--size: %q is not possible: use N or MxNxK with numbers from 1, such as 1024 or 2048x768x768", s)
		}
		n = append(n, v)
	}
	switch len(n) {
	case 1:
		n = []int{n[0], n[0], n[0]}
	case 3:
	default:
		return bench.Dims{}, usagef("--size: %q has %s: use N or MxNxK", s, counted(len(n), "number"))
	}
	d := bench.Dims{M: n[0], N: n[1], K: n[2]}
	if d.M > model.MaxElems/d.N || d.M > model.MaxElems/d.K || d.N > model.MaxElems/d.K {
		return d, usagef("--size: %q makes a matrix of more than %d elements: use a smaller one", s, model.MaxElems)
	}
	return d, nil
}

func benchMatMul(ctx context.Context, out io.Writer, f benchMatMulFlags) (err error) {
	o := bench.MatMulOptions{Orders: f.orders, Repeats: f.repeats}
	if f.repeats < 1 || f.repeats > maxRepeats {
		return usagef("--repeats: %d is not possible: use 1 to %d", f.repeats, maxRepeats)
	}
	for _, s := range f.sizes {
		d, err := parseDims(s)
		if err != nil {
			return err
		}
		o.Sizes = append(o.Sizes, d)
	}
	for _, order := range f.orders {
		if !slices.Contains(bench.MatMulOrders(), order) {
			return usagef("--order: %q is unknown: use %s", order, orWords(bench.MatMulOrders()))
		}
	}
	for _, p := range f.precision {
		if !slices.Contains(train.PrecisionNames(), p) {
			return usagef("--precision: %q is unknown: use %s", p, orWords(train.PrecisionNames()))
		}
	}
	dev, why, err := f.device.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	for _, p := range f.precision {
		format, err := train.Storage(p, dev.Info().Kind)
		if err != nil {
			return err
		}
		if !slices.Contains(o.Precisions, format) {
			o.Precisions = append(o.Precisions, format)
		}
	}
	r, err := bench.MatMuls(ctx, dev, o)
	switch {
	case errors.Is(err, context.Canceled):
		return errInterrupted
	case err != nil:
		return err
	case f.json:
		return writeJSON(out, r)
	}
	writeMatMuls(out, r, why)
	return nil
}

func writeMatMuls(out io.Writer, r bench.MatMulReport, why string) {
	if why != "" {
		why = "; auto: " + oneLine(why)
	}
	row(out, "device", "%s%s", r.Device, why)
	if r.Peak != nil {
		row(out, "peak", "%s", peakText(*r.Peak))
	}
	fmt.Fprintln(out)
	t := table{left: 4, rows: [][]string{{"order", "M x N x K", "format", "kernel", "ms", "at best", "GFLOP/s", "of " + graph.F32.String() + " peak"}}}
	for _, p := range r.Products {
		of := "-"
		if r.Peak != nil {
			of = percent(p.OfPeak)
		}
		t.add(p.Order, fmt.Sprintf("%dx%dx%d", p.M, p.N, p.K), p.Precision, cmp.Or(p.Kernel, "-"), fmt.Sprintf("%.4f", p.Ms), fmt.Sprintf("%.4f", p.MsMin),
			fmt.Sprintf("%.1f", p.GFLOPs), of)
	}
	t.write(out)
}
