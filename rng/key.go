package rng

// Key is a state's seed and stream, low halves first: what a kernel needs to draw from the stream.
func (s State) Key() [4]uint32 {
	return [4]uint32{uint32(s.Seed), uint32(s.Seed >> 32), uint32(s.Stream), uint32(s.Stream >> 32)}
}

// OfKey is the state at the begin of the stream that a key tells.
func OfKey(key [4]uint32) State {
	return State{Seed: uint64(key[1])<<32 | uint64(key[0]), Stream: uint64(key[3])<<32 | uint64(key[2])}
}
