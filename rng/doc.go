// Package rng gives counter-based random numbers: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
// easy as 1, 2, 3" (SC 2011).
//
// A [Rand] is a seed, a stream and a position. Word n of a stream is a pure function of those three, so a stream can be saved, sought
// and shared out over workers without drawing the words before it. Streams of one seed are independent of each other: give
// each use its own name,
//
//	rng.New(seed, "init", name)           // the values of one parameter, whatever other parameters there are
//	rng.New(seed, "order", rng.Num(epoch)) // the order of one epoch
//
// # The counter
//
// Block n holds the words 4n to 4n+3 of a stream. It is philox4x32-10 of the counter {n low, n high, stream low, stream high} under the
// key {seed low, seed high}, each half 32 bits. The stream is 64 bits of the SHA-256 of the names, each behind its length. A 64-bit number
// takes two words, the low one first. A normal number of [Rand.NormFloat64] is a block; [Rand.Normals] makes four out of one.
//
// Integers and uniform numbers are the same on every machine. Normal numbers go through package math, whose last bit may differ
// between processor architectures.
//
// A Rand is not safe for use by several goroutines at once; give each its own.
package rng
