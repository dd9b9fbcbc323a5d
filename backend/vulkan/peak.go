//go:build cgo

package vulkan

import (
	"errors"
	"fmt"

	"github.com/vktrain/vktrain/backend"
)

var _ backend.PeakMeter = (*Backend)(nil)

// peakSeconds: a dispatch that takes longer is not made longer.
const peakSeconds = 5e-3

// peakLoops are programs of one node each, which lower to the loops instead of the operator that they have.
type peakLoops struct {
	b     *Backend
	out   backend.Store
	fma   *Executable
	flops float64 // of a run of fma

	arrays backend.Store // made by the first Triad
	triad  *Executable
	bytes  float64 // of a run of triad
}

// NewPeakLoops makes the loop of FMAs as long as peakSeconds, in steps of two from one that takes milliseconds on the slowest driver: no
// dispatch comes near a watchdog's limit.
func (b *Backend) NewPeakLoops() (_ backend.PeakLoops, err error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	if b.physical.Limits.TimestampNanos == 0 {
		return nil, fmt.Errorf("vulkan: %s has no timestamps on its compute queue: %w", b.physical.Name, errors.ErrUnsupported)
	}
	groups := 4096 // a million threads: more than any device runs at a time
	if b.physical.Kind == backend.Software {
		groups = 32
	}
	l := &peakLoops{b: b}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	p := fmaProgram(groups * b.caps.threads())
	if l.out, err = b.NewStore(p.Vars()); err != nil {
		return nil, err
	}
	for rounds := 16; ; rounds *= 2 {
		if l.fma, err = b.compile(p, l.out, b.capsNow(), lowerFMA(groups, fmaPush{uint32(rounds), 1 - 0x1p-20, 0x1p-20})); err != nil {
			return nil, err
		}
		l.flops = 2 * fmaSums * fmaUnroll * float64(b.caps.threads()*groups*rounds)
		seconds, err := run(l.fma)
		if err != nil {
			return nil, err
		}
		if seconds >= peakSeconds || 2*rounds > softwareLoops {
			return l, nil
		}
		if err := l.fma.Close(); err != nil {
			return nil, err
		}
	}
}

// run returns the seconds that the one node of a loop took.
func run(e *Executable) (float64, error) {
	seconds, err := e.Profile()
	if err != nil {
		return 0, err
	}
	return seconds[0], nil
}

// rate is amount over the seconds of a run, in billions; 0 where the device's clock is too coarse to see it.
func rate(e *Executable, amount float64) (float64, error) {
	seconds, err := run(e)
	if err != nil || seconds == 0 {
		return 0, err
	}
	return amount / seconds / 1e9, nil
}

// Kernel names what the loops are written in.
func (l *peakLoops) Kernel() string { return "shaders" }

// FMA runs the loop a few times and takes the best.
func (l *peakLoops) FMA() (best float64, err error) {
	for range 3 {
		gflops, err := rate(l.fma, l.flops)
		if err != nil {
			return 0, err
		}
		best = max(best, gflops)
	}
	return best, nil
}

// Triad goes over arrays of 128 MiB each, or 32 MiB where the device is a CPU; of less where there is no room for them.
func (l *peakLoops) Triad() (float64, error) {
	if l.triad == nil {
		size := 128 << 20
		if l.b.physical.Kind == backend.Software {
			size = 32 << 20
		}
		if err := l.makeTriad(size); err != nil {
			return 0, err
		}
	}
	return rate(l.triad, l.bytes)
}

func (l *peakLoops) makeTriad(size int) (err error) {
	const least = 1 << 20
	for size = min(size, int(l.b.caps.maxBindBytes)/16*16); ; size = max(size/2/16*16, least) {
		p := triadProgram(size / 4)
		l.arrays, err = l.b.NewStore(p.Vars())
		var full *MemoryError
		switch {
		case err == nil:
			l.triad, err = l.b.compile(p, l.arrays, l.b.capsNow(), lowerTriad(0.5))
			l.bytes = 3 * float64(size)
			return err
		case !errors.As(err, &full) || size <= least:
			return err
		}
	}
}

// Close frees the loops' memory.
func (l *peakLoops) Close() error {
	var errs []error
	for _, e := range []*Executable{l.fma, l.triad} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	for _, s := range []backend.Store{l.out, l.arrays} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
