package rng

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// Rand draws numbers from one stream of one seed.
type Rand struct {
	state State
	block [4]uint32 // the block of state.Word, where that is not a multiple of four
}

// State is all there is to know of a [Rand]: restoring it continues the numbers where they stopped.
type State struct {
	Seed   uint64 `json:"seed"`
	Stream uint64 `json:"stream"` // made from the names
	Word   uint64 `json:"word"`   // of 32 bits, the next to be drawn
}

// New starts the stream of a seed that the names tell. No names are a stream too.
func New(seed uint64, names ...string) *Rand {
	h := sha256.New()
	for _, name := range names {
		var length [8]byte
		binary.LittleEndian.PutUint64(length[:], uint64(len(name)))
		h.Write(length[:])
		h.Write([]byte(name))
	}
	return Restore(State{Seed: seed, Stream: binary.LittleEndian.Uint64(h.Sum(nil))})
}

// Num writes a number as a name for [New].
func Num[T ~int | ~int64 | ~uint64](n T) string {
	if n < 0 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatUint(uint64(n), 10)
}

// Restore continues from a state.
func Restore(s State) *Rand {
	r := &Rand{state: s}
	r.Seek(s.Word)
	return r
}

// State gives what [Restore] takes.
func (r *Rand) State() State { return r.state }

// Seek makes word n of the stream the next one.
func (r *Rand) Seek(n uint64) {
	r.state.Word = n
	if n%4 != 0 {
		r.load()
	}
}

func (r *Rand) load() {
	n, key := r.state.Word/4, r.state.Key()
	r.block = philox4x32([4]uint32{uint32(n), uint32(n >> 32), key[2], key[3]}, [2]uint32{key[0], key[1]})
}

// Uint32 is uniform over 32 bits; it takes one word.
func (r *Rand) Uint32() uint32 {
	i := r.state.Word % 4
	if i == 0 {
		r.load()
	}
	r.state.Word++
	return r.block[i]
}

// Uint64 is uniform over 64 bits; it takes two words. With it a Rand is a math/rand/v2 Source.
func (r *Rand) Uint64() uint64 {
	low := uint64(r.Uint32())
	return uint64(r.Uint32())<<32 | low
}

// Float64 is uniform over the multiples of 2^-53 in [0, 1); it takes two words.
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) * 0x1p-53 }

// NormFloat64 is normal with mean 0 and variance 1, by the cosine half of Box and Muller 1958. It skips to a multiple of four words
// and takes four.
func (r *Rand) NormFloat64() float64 {
	r.align()
	// The radius wants (0, 1]: its logarithm must be finite.
	radius := 1 - r.Float64()
	return math.Sqrt(-2*math.Log(radius)) * math.Cos(2*math.Pi*r.Float64())
}

// Normals fills dst with float32 numbers of mean 0 and variance 1, by both halves of Box and Muller 1958. It skips to a multiple of four
// words and takes one for each number, rounded up to four: dst[i] is a function of the words i&^1 and i|1 after the skip, so that workers which
// [Rand.Seek] to multiples of four fill the parts of one tensor. With 32 bits for the radius no number is beyond 6.7 standard
// deviations.
func (r *Rand) Normals(dst []float32) {
	for r.align(); len(dst) > 0; r.state.Word += 4 {
		r.load()
		var z [4]float32
		for i := 0; i < 4; i += 2 {
			// The middles of 2^32 cells of (0, 1): the logarithm is finite.
			radius := math.Sqrt(-2 * math.Log((float64(r.block[i])+0.5)*0x1p-32))
			sin, cos := math.Sincos(2 * math.Pi * 0x1p-32 * float64(r.block[i+1]))
			z[i], z[i+1] = float32(radius*cos), float32(radius*sin)
		}
		dst = dst[copy(dst, z[:]):]
	}
}

// align skips to the next block.
func (r *Rand) align() { r.state.Word = (r.state.Word + 3) &^ 3 }

// IntN is uniform over [0, n), without bias: Lemire 2019, "Fast random integer generation in an interval". It takes two words, or now and
// then more.
func (r *Rand) IntN(n int) int {
	if n <= 0 {
		panic("rng: IntN of a bound under 1")
	}
	hi, lo := bits.Mul64(r.Uint64(), uint64(n))
	if lo < uint64(n) {
		for short := -uint64(n) % uint64(n); lo < short; {
			hi, lo = bits.Mul64(r.Uint64(), uint64(n))
		}
	}
	return int(hi)
}

// Perm is a uniformly random order of the numbers 0 to n-1.
func (r *Rand) Perm(n int) []int {
	p := make([]int, n)
	for i := range p {
		j := r.IntN(i + 1)
		p[i] = p[j]
		p[j] = i
	}
	return p
}
