package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
	"github.com/vktrain/vktrain/internal/bootstrap"
	"github.com/vktrain/vktrain/rng"
	"github.com/vktrain/vktrain/train"
)

// MatMulOrders are the products of training: a layer's forward pass (NT), and its gradients with respect to its input (NN) and its weights (TN).
func MatMulOrders() []string { return []string{"NN", "NT", "TN"} }

// Dims are those of a product: (M, K) times (K, N).
type Dims struct{ M, N, K int }

// MatMulOptions say which products are measured: each order with each size in each format.
type MatMulOptions struct {
	Sizes      []Dims
	Orders     []string      // of MatMulOrders
	Precisions []graph.DType // of both operands and the result; sums are float32
	Repeats    int
}

// Product is how fast a matrix product is.
type Product struct {
	Order     string  `json:"order"`
	M         int     `json:"m"`
	N         int     `json:"n"`
	K         int     `json:"k"`
	Precision string  `json:"precision"`
	Kernel    string  `json:"kernel,omitempty"` // what runs it, where the device tells
	Ms        float64 `json:"ms"`               // the median
	MsMin     float64 `json:"ms_min"`
	GFLOPs    float64 `json:"gflops"`            // per second, by the median
	OfPeak    float64 `json:"of_peak,omitempty"` // of the device's float32 FMAs, which matrix units may exceed; 0 if that is unknown
}

// MatMulReport is what MatMuls found.
type MatMulReport struct {
	Device   string    `json:"device"`
	Peak     *Peak     `json:"peak,omitempty"` // nil if the device's can't be measured
	Products []Product `json:"products"`
}

// MatMuls times products of random matrices by themselves.
func MatMuls(ctx context.Context, dev backend.Backend, o MatMulOptions) (report MatMulReport, err error) {
	if o.Repeats < 1 {
		return report, fmt.Errorf("%d repeats are too few: use at least 1", o.Repeats)
	}
	report.Device = dev.Info().String()
	for range 2 { // before and after, for a machine that others use too
		switch p, err := MeasurePeak(dev); {
		case errors.Is(err, ErrNoPeak):
		case err != nil:
			return report, err
		case report.Peak == nil:
			report.Peak = &p
		default:
			report.Peak.GFLOPs, report.Peak.GBs = max(report.Peak.GFLOPs, p.GFLOPs), max(report.Peak.GBs, p.GBs)
		}
		if report.Products != nil {
			break
		}
		for _, size := range o.Sizes {
			for _, order := range o.Orders {
				for _, format := range o.Precisions {
					if err := ctx.Err(); err != nil {
						return report, err
					}
					p, err := matMul(ctx, dev, order, size, format, o.Repeats)
					if err != nil {
						return report, fmt.Errorf("%s %dx%dx%d in %s: %w", order, size.M, size.N, size.K, format, err)
					}
					report.Products = append(report.Products, p)
				}
			}
		}
	}
	if report.Peak != nil {
		for i := range report.Products {
			report.Products[i].OfPeak = ratio(report.Products[i].GFLOPs, report.Peak.GFLOPs)
		}
	}
	return report, nil
}

// productProgram is c = op(a) op(b) over variables.
func productProgram(order string, d Dims, format graph.DType) (*graph.Program, error) {
	if !slices.Contains(MatMulOrders(), order) {
		return nil, fmt.Errorf("the order %q is unknown: use NN, NT or TN", order)
	}
	attr := graph.MatMulAttr{TransA: order[0] == 'T', TransB: order[1] == 'T'}
	rows, cols := [2]int{d.M, d.K}, [2]int{d.K, d.N}
	if attr.TransA {
		rows[0], rows[1] = rows[1], rows[0]
	}
	if attr.TransB {
		cols[0], cols[1] = cols[1], cols[0]
	}
	b := graph.NewBuilder()
	b.MatMul(b.Var("a", format, rows[:]...), b.Var("b", format, cols[:]...), nil, b.Var("c", format, d.M, d.N), attr)
	return b.Build("product"), nil
}

func matMul(ctx context.Context, dev backend.Backend, order string, d Dims, format graph.DType, repeats int) (result Product, err error) {
	result = Product{Order: order, M: d.M, N: d.N, K: d.K, Precision: format.String()}
	p, err := productProgram(order, d, format)
	if err != nil {
		return result, err
	}
	if err := train.MemoryOn(dev, p).Check(dev.Info()); err != nil {
		return result, err
	}
	store, err := dev.NewStore(p.Vars())
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r := rng.New(1, "product")
	for _, v := range p.Vars() {
		if err := backend.WriteParts(store, v, func(part []byte, _ int) error { fillOnes(part, v.DType, r); return ctx.Err() }); err != nil {
			return result, err
		}
	}
	e, err := dev.Compile(p, store)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	prof, ok := e.(backend.Profiler)
	if !ok {
		return result, errNoProfile
	}
	if names := kernelsOf(e); names != nil {
		result.Kernel = names[0]
	}
	var times []float64
	for i := range warmUp + repeats {
		if err := ctx.Err(); err != nil {
			return result, err
		}
		seconds, err := prof.Profile()
		if err != nil {
			return result, err
		}
		if i >= warmUp {
			times = append(times, seconds[0])
		}
	}
	s := bootstrap.Median(times)
	flops, _ := graph.Cost(p.Nodes()[0])
	result.Ms, result.MsMin, result.GFLOPs = 1e3*s, 1e3*slices.Min(times), ratio(float64(flops)/1e9, s)
	return result, nil
}

// fillOnes writes numbers between 1 and 2 of either sign: all bits of their fractions are random, so that no unit of the device rests, and their products
// overflow no format.
func fillOnes(part []byte, format graph.DType, r *rng.Rand) {
	for i := 0; i+format.Size() <= len(part); i += format.Size() {
		bits := uint32(r.Uint64())
		switch format {
		case graph.BF16:
			binary.NativeEndian.PutUint16(part[i:], uint16(bits)&0x807f|0x3f80)
		case graph.F16:
			binary.NativeEndian.PutUint16(part[i:], uint16(bits)&0x83ff|0x3c00)
		default:
			binary.NativeEndian.PutUint32(part[i:], bits&0x807fffff|0x3f800000)
		}
	}
}
