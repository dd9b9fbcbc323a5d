package rng

import "math/bits"

// philox4x32 is the bijection of Salmon et al. 2011, section 3.3, with ten rounds.
func philox4x32(ctr [4]uint32, key [2]uint32) [4]uint32 {
	const (
		mul0, mul1   = 0xD2511F53, 0xCD9E8D57
		weyl0, weyl1 = 0x9E3779B9, 0xBB67AE85 // the golden ratio and √3 - 1
	)
	for range 10 {
		hi0, lo0 := bits.Mul32(mul0, ctr[0])
		hi1, lo1 := bits.Mul32(mul1, ctr[2])
		ctr = [4]uint32{hi1 ^ ctr[1] ^ key[0], lo1, hi0 ^ ctr[3] ^ key[1], lo0}
		key[0] += weyl0
		key[1] += weyl1
	}
	return ctr
}
