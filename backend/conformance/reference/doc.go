// Package reference runs any graph.Program in float64, in the plainest loops that follow the operators' formulas. It is the oracle
// that the conformance kit holds every backend against: it shares no code with them, and values legibility over speed.
//
// [Machine] is the float64 interpreter. [Backend] is the same interpreter behind the backend contract, with every result rounded
// to its format: a slow and very accurate float32 device, which the kit uses to check itself.
package reference
