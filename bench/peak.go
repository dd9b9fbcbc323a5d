package bench

import (
	"errors"

	"github.com/vktrain/vktrain/backend"
)

// Peak is the most that a device does, as measured by its loops (backend.PeakLoops).
type Peak struct {
	Threads int     `json:"threads,omitempty"` // of the CPU
	GFLOPs  float64 `json:"gflops"`            // per second, of float32 FMAs on registers
	GBs     float64 `json:"gb_per_s"`          // read and written by a triad over arrays that no cache holds
	Kernel  string  `json:"kernel"`            // what the loops are written in
}

// ErrNoPeak is the error of a device whose peak can't be measured.
var ErrNoPeak = errors.New("the device's peak can't be measured")

// newPeakLoops returns nil for a device whose peak can't be measured.
func newPeakLoops(dev backend.Backend) (backend.PeakLoops, error) {
	m, ok := dev.(backend.PeakMeter)
	if !ok {
		return nil, nil
	}
	l, err := m.NewPeakLoops()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	return l, err
}

// MeasurePeak takes about half a second, and the memory of the triad's arrays.
func MeasurePeak(dev backend.Backend) (Peak, error) {
	p := Peak{Threads: threads(dev)}
	l, err := newPeakLoops(dev)
	if err != nil {
		return p, err
	}
	if l == nil {
		return p, ErrNoPeak
	}
	p.Kernel = l.Kernel()
	for range 8 {
		fma, err := l.FMA()
		if err != nil {
			return p, errors.Join(err, l.Close())
		}
		triad, err := l.Triad()
		if err != nil {
			return p, errors.Join(err, l.Close())
		}
		p.GFLOPs, p.GBs = max(p.GFLOPs, fma), max(p.GBs, triad)
	}
	return p, l.Close()
}

// threads is how many the CPU computes with, 0 for another device.
func threads(dev backend.Backend) int {
	if c, ok := dev.(interface{ Threads() int }); ok {
		return c.Threads()
	}
	return 0
}
