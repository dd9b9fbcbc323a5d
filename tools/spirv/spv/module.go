// Package spv reads SPIR-V binaries: as much of the format as is needed to say what a compute kernel expects of its host and of
// the device. Numbers are those of the SPIR-V specification, unified1.
package spv

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const magic = 0x07230203

// Instruction opcodes.
const (
	opName              = 5
	opMemberName        = 6
	opExtension         = 10
	opEntryPoint        = 15
	opExecutionMode     = 16
	opCapability        = 17
	opTypeVoid          = 19
	opTypeBool          = 20
	opTypeInt           = 21
	opTypeFloat         = 22
	opTypeVector        = 23
	opTypeArray         = 28
	opTypeRuntimeArray  = 29
	opTypeStruct        = 30
	opTypePointer       = 32
	opConstantTrue      = 41
	opConstantFalse     = 42
	opConstant          = 43
	opConstantComposite = 44
	opSpecConstantTrue  = 48
	opSpecConstantFalse = 49
	opSpecConstant      = 50
	opSpecComposite     = 51
	opVariable          = 59
	opDecorate          = 71
	opMemberDecorate    = 72
	opTypeMatrixKHR     = 4456
	opAtomicFMin        = 5614
	opAtomicFMax        = 5615
	opAtomicFAdd        = 6035
)

// Decorations.
const (
	decSpecID        = 1
	decBuiltIn       = 11
	decNonWritable   = 24
	decNonReadable   = 25
	decBinding       = 33
	decDescriptorSet = 34
	decOffset        = 35
)

// Storage classes.
const (
	classWorkgroup     = 4
	classPushConstant  = 9
	classStorageBuffer = 12
)

const (
	modeLocalSize        = 17
	executionModelGLCS   = 5
	builtInWorkgroupSize = 25
)

var capabilityNames = map[uint32]string{
	0: "Matrix", 1: "Shader", 9: "Float16", 10: "Float64", 11: "Int64", 12: "Int64Atomics", 22: "Int16", 39: "Int8",
	61: "GroupNonUniform", 62: "GroupNonUniformVote", 63: "GroupNonUniformArithmetic", 64: "GroupNonUniformBallot",
	65: "GroupNonUniformShuffle", 66: "GroupNonUniformShuffleRelative", 67: "GroupNonUniformClustered", 68: "GroupNonUniformQuad",
	4433: "StorageBuffer16BitAccess", 4434: "UniformAndStorageBuffer16BitAccess", 4448: "StorageBuffer8BitAccess",
	5345: "VulkanMemoryModel", 5346: "VulkanMemoryModelDeviceScope", 5612: "AtomicFloat32MinMaxEXT",
	5116: "BFloat16TypeKHR", 5118: "BFloat16CooperativeMatrixKHR", 6022: "CooperativeMatrixKHR", 6033: "AtomicFloat32AddEXT", 6034: "AtomicFloat64AddEXT",
}

// inst is one instruction: its operands without the first word.
type inst struct {
	op  uint32
	arg []uint32
}

type decoration struct {
	kind uint32
	arg  []uint32
}

type memberKey struct{ id, member uint32 }

// module is a binary taken apart.
type module struct {
	version      uint32
	instructions int
	defs         map[uint32]inst // types, constants and variables by result ID
	names        map[uint32]string
	memberNames  map[memberKey]string
	decorations  map[uint32][]decoration
	memberDecs   map[memberKey][]decoration
	variables    []uint32 // result IDs in order
	specs        []uint32
	capabilities []uint32
	extensions   []string
	entryPoints  []inst
	modes        []inst
	floatAtomics bool
}

func parse(data []byte) (*module, error) {
	if len(data) < 20 || len(data)%4 != 0 {
		return nil, fmt.Errorf("spv: %d bytes are no SPIR-V binary", len(data))
	}
	words := make([]uint32, len(data)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	if words[0] != magic {
		return nil, fmt.Errorf("spv: the first word is %#x, want %#x", words[0], uint32(magic))
	}
	m := &module{
		version: words[1], defs: map[uint32]inst{}, names: map[uint32]string{}, memberNames: map[memberKey]string{},
		decorations: map[uint32][]decoration{}, memberDecs: map[memberKey][]decoration{},
	}
	for i := 5; i < len(words); {
		n := int(words[i] >> 16)
		if n == 0 || i+n > len(words) {
			return nil, fmt.Errorf("spv: instruction at word %d has length %d, beyond the end", i, n)
		}
		in := inst{words[i] & 0xffff, words[i+1 : i+n]}
		if err := m.add(in); err != nil {
			return nil, fmt.Errorf("spv: word %d: %w", i, err)
		}
		i += n
	}
	return m, nil
}

// minArgs is how many operands the instructions that add reads have at least.
var minArgs = map[uint32]int{
	opName: 2, opMemberName: 3, opExtension: 1, opEntryPoint: 3, opExecutionMode: 2, opCapability: 1,
	opTypeVoid: 1, opTypeBool: 1, opTypeInt: 3, opTypeFloat: 2, opTypeVector: 3, opTypeArray: 3, opTypeRuntimeArray: 2,
	opTypeStruct: 1, opTypePointer: 3, opTypeMatrixKHR: 6, opConstantTrue: 2, opConstantFalse: 2, opConstant: 3, opConstantComposite: 2,
	opSpecConstantTrue: 2, opSpecConstantFalse: 2, opSpecConstant: 3, opSpecComposite: 2, opVariable: 3, opDecorate: 2, opMemberDecorate: 3,
}

func (m *module) add(in inst) error {
	m.instructions++
	if len(in.arg) < minArgs[in.op] {
		return fmt.Errorf("opcode %d has %d operands, want %d", in.op, len(in.arg), minArgs[in.op])
	}
	switch in.op {
	case opName:
		m.names[in.arg[0]] = text(in.arg[1:])
	case opMemberName:
		m.memberNames[memberKey{in.arg[0], in.arg[1]}] = text(in.arg[2:])
	case opExtension:
		m.extensions = append(m.extensions, text(in.arg))
	case opCapability:
		m.capabilities = append(m.capabilities, in.arg[0])
	case opEntryPoint:
		m.entryPoints = append(m.entryPoints, in)
	case opExecutionMode:
		m.modes = append(m.modes, in)
	case opTypeVoid, opTypeBool, opTypeInt, opTypeFloat, opTypePointer:
		return m.define(in.arg[0], in)
	case opTypeVector, opTypeArray, opTypeRuntimeArray, opTypeMatrixKHR:
		return m.define(in.arg[0], in, in.arg[1])
	case opTypeStruct:
		return m.define(in.arg[0], in, in.arg[1:]...)
	case opSpecConstantTrue, opSpecConstantFalse, opSpecConstant:
		m.specs = append(m.specs, in.arg[1])
		return m.define(in.arg[1], in, in.arg[0])
	case opConstantTrue, opConstantFalse, opConstant, opConstantComposite, opSpecComposite:
		return m.define(in.arg[1], in, in.arg[0])
	case opVariable:
		m.variables = append(m.variables, in.arg[1])
		return m.define(in.arg[1], in, in.arg[0])
	case opDecorate:
		m.decorations[in.arg[0]] = append(m.decorations[in.arg[0]], decoration{in.arg[1], in.arg[2:]})
	case opMemberDecorate:
		k := memberKey{in.arg[0], in.arg[1]}
		m.memberDecs[k] = append(m.memberDecs[k], decoration{in.arg[2], in.arg[3:]})
	case opAtomicFMin, opAtomicFMax, opAtomicFAdd:
		m.floatAtomics = true
	}
	return nil
}

// define keeps an instruction by its result. What it is made of must be there already, so that no type contains itself.
func (m *module) define(id uint32, in inst, parts ...uint32) error {
	if _, ok := m.defs[id]; ok {
		return fmt.Errorf("%%%d is defined twice", id)
	}
	for _, p := range parts {
		if _, ok := m.defs[p]; !ok {
			return fmt.Errorf("%%%d is made of %%%d, which is not defined", id, p)
		}
	}
	m.defs[id] = in
	return nil
}

// text reads a literal string: UTF-8 in little-endian words, ended by a zero.
func text(words []uint32) string {
	var b strings.Builder
	for _, w := range words {
		for range 4 {
			if byte(w) == 0 {
				return b.String()
			}
			b.WriteByte(byte(w))
			w >>= 8
		}
	}
	return b.String()
}

// find gives the first operand of a decoration.
func find(list []decoration, kind uint32) (value uint32, ok bool) {
	for _, d := range list {
		if d.kind == kind {
			if len(d.arg) > 0 {
				value = d.arg[0]
			}
			return value, true
		}
	}
	return 0, false
}
