// Package manifest describes compiled kernels: what tools/spirv reads out of a binary and package shaders embeds.
package manifest

// Manifest is the file shaders/manifest.json.
type Manifest struct {
	Compiler  string   `json:"compiler"`  // name and version
	Optimizer string   `json:"optimizer"` // name and version
	Kernels   []Kernel `json:"kernels"`   // sorted by name
}

// Kernel is one compute shader, as its binary says.
type Kernel struct {
	Name       string   `json:"name"`
	Source     string   `json:"source"`             // file in shaders/
	Defines    []string `json:"defines,omitempty"`  // of this variant, as NAME=VALUE
	SourceHash string   `json:"source_hash"`        // SHA-256 of the source, all it includes, the defines and the compiler's options
	BinaryHash string   `json:"binary_hash"`        // SHA-256 of the binary
	Compiler   string   `json:"compiler,omitempty"` // name and version, where it is not the manifest's

	Bindings     int         `json:"bindings"`             // storage buffers 0 to Bindings-1 of set 0
	Access       []string    `json:"access"`               // of each binding: "r", "w" or "rw"
	PushBytes    int         `json:"push_bytes,omitempty"` // size of the push-constant block, 0 if it has none
	Push         []Field     `json:"push,omitempty"`       // its members in order
	Spec         []SpecConst `json:"spec,omitempty"`       // by ID
	LocalSize    [3]uint32   `json:"local_size"`           // threads of a workgroup
	SharedBytes  int         `json:"shared_bytes"`         // workgroup memory
	Capabilities []string    `json:"capabilities"`         // SPIR-V capabilities
	Extensions   []string    `json:"extensions,omitempty"` // SPIR-V extensions
	FloatAtomics bool        `json:"float_atomics"`        // uses an atomic on floats
	Version      string      `json:"version"`              // of SPIR-V
	Instructions int         `json:"instructions"`         // in the binary, a measure of compile time
	SPIRV        []byte      `json:"-"`                    // the binary
}

// Field is a member of a push-constant block.
type Field struct {
	Name   string `json:"name"`
	Type   string `json:"type"` // uint, int, float, or a vector of them as uvec4
	Offset int    `json:"offset"`
	Size   int    `json:"size"` // in bytes
}

// SpecConst is a specialization constant.
type SpecConst struct {
	ID      uint32 `json:"id"`
	Name    string `json:"name"`
	Type    string `json:"type"`    // bool, uint, int or float
	Default uint32 `json:"default"` // as bits
}
