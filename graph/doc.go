// Package graph is the vocabulary that a training step is written in: values, operators, programs,
// gradients and plans. It knows no device.
//
// Model code builds the forward pass with a [Builder]. [Builder.Grad] walks it backwards and emits
// gradient nodes from the same vocabulary; the optimiser is an operator too. [Builder.Build] gives an
// immutable [Program], which a backend compiles once and replays. [NewPlan] gives each intermediate a
// place in one arena by its lifetime and each hazard its barrier, the same for every backend.
//
// # Values are storage
//
// A [Value] is a named, shaped piece of storage, not a mathematical quantity: nodes run in program order,
// and a node may update a value in place by listing it among its inputs and its outputs. All tensors are
// dense and row-major; rank is 1 or more and no dimension is zero. A value is a variable (kept in a
// backend.Store across runs), an input (fed before each run), a temporary (lives in the arena), or a
// view of a part of one of those.
//
// Most operators see a tensor of shape (..., n) as rows of length n. Their comments call the number of
// rows R.
//
// # Who checks
//
// Constructors panic with "graph: reason" on shapes that do not fit: they are called with shapes that the
// program's author chose, so a mismatch is a bug and not an input error. Sizes that come from users are
// checked where they enter (model.Config.Validate).
package graph
