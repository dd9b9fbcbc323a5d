// Package conformance proves that a backend computes what package graph says. In one line:
//
//	conformance.Run(t, b)
//
// runs every case as a subtest; [Check] does the same without package testing, and gives a [Report].
//
// # What is checked of an operator
//
// Each operand is a view inside a larger variable whose margins hold NaNs of a known pattern; outputs are NaN before the run. After
// it, every output element must be within its bound of the float64 reference (package reference), inputs and margins must have the
// bits they had, and a second run must give the same bits. A NaN in an input must come out as a NaN in exactly the elements that
// the reference says depend on it. An infinity must come out as something that is not finite where the reference does not
// stay finite, and must not touch elements that do not depend on it.
//
// # What is checked of programs
//
// Programs full of hazards, transformer blocks, training steps of models that differ in each of their axes, gradient accumulation,
// evaluation beside training, a hundred steps of a loss curve, the exact invariants of normalised models, and golden models
// of another implementation: every output, gradient and parameter against float64. And the contract of package backend, rule by rule.
//
// # Bounds
//
// The bound of an element is computed with the element, by error arithmetic in float64 (type num): each operation adds the
// rounding that a float32 device may commit there and passes on, by its derivative, what its operands carry. Nothing is tuned to
// what a backend happens to give. The budget, in units of u = 2⁻²⁴ (half an ulp) relative to the result:
//
//	add, subtract, multiply, fused or not     1
//	a sum of n terms in any order             n-1, of the sum of magnitudes
//	divide, square root                       6   (3 ulp)
//	exp, tanh, erf, relative                  8   (4 ulp)
//	log                                       8, of max(1, |log|)
//	sin, cos, absolute                        8, and 8 of the angle
//
// and 2⁻¹²⁶ for each result, since devices may flush subnormal numbers to zero. The total is doubled: an implementation may
// arrange a formula in another way. Where a step leaves float32's range, nothing is expected of what follows from it.
//
// Activations may be bf16 or f16. Such an input is exact; an output must be one of the numbers that rounding gives for some result within the
// bound, so that only results near the middle of two numbers may differ at all. Each case is run again in both formats, and with each operand in
// one of its own.
//
// In a whole program worst cases never meet, so its bounds follow these budgets by sampling: see noise.go.
package conformance
