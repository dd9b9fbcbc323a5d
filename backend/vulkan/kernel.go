package vulkan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// What the kernels rely on: the least that Vulkan allows, but for the buffers, and far less of what a buffer and an allocation can be. A device that has
// less is not usable, and Devices says why.
const (
	floorPushBytes   = 128
	floorInvocations = 128
	floorGroups      = 65535 // workgroups a dispatch, by dimension
	floorShared      = 16 << 10
	floorBindings    = 16 // storage buffers a kernel
	floorBindBytes   = 64 << 10
	floorAllocBytes  = 4 << 20

	fullThreads = 256 // a workgroup of most kernels, where a device allows that
)

// dispatch is one kernel launch of a node.
type dispatch struct {
	kernel  string         // a shader's name
	spec    []uint32       // specialization constants 0 to n-1; floats as bits
	push    any            // nil or a struct of 4-byte fields, laid out as the shader's push-constant block
	bind    []*graph.Value // bindings 0 to n-1 of set 0; nil is the device's dummy buffer, and what is no operand of the node is scratch memory
	groups  [3]uint32      // workgroups in x, y, z
	barrier bool           // wait for the node's earlier dispatches before this one
	label   string         // what Kernels calls it; "": the shader's name

	subgroupSize  uint32 // required subgroup size, 0 for the driver's choice; only where deviceCaps.subgroupSizeControl
	fullSubgroups bool   // subgroups are full; only where deviceCaps.fullSubgroups
}

// lowerFunc turns a node into its dispatches on a device; the error is an UnsupportedError where the device cannot run it.
type lowerFunc func(d *deviceCaps, n *graph.Node) ([]dispatch, error)

// deviceCaps is what lowerings may choose by. The zero value of each optional field is always a correct choice.
type deviceCaps struct {
	name string // of the device, for messages
	kind backend.Kind

	vendor uint32 // its number, 0 for any

	maxInvocations uint32    // threads a workgroup, at least 128
	maxGroupSize   [3]uint32 // threads a workgroup by dimension
	maxGroups      [3]uint32 // workgroups a dispatch by dimension, at least 65535
	sharedBytes    uint32    // shared memory a workgroup, at least 16 KiB
	maxBindBytes   int64     // maxStorageBufferRange, at least 128 MiB

	subgroupSize      uint32 // nominal; a shader may see another one unless it is required
	subgroupVote      bool   // the operations below work in compute shaders
	subgroupArith     bool
	subgroupBallot    bool // and broadcast
	subgroupShuffle   bool
	subgroupClustered bool

	subgroupSizeControl              bool // a size from min to max may be required
	minSubgroupSize, maxSubgroupSize uint32
	fullSubgroups                    bool

	storage16 bool // 16-bit loads and stores in storage buffers
	int16     bool // 16-bit integer arithmetic
	float16   bool // 16-bit float arithmetic
	int8      bool

	// chosen names the kernel that was measured to be the best for a node of a shape among names, of which the first is the rule's; "" if nothing was
	// measured. Nil: nothing ever is.
	chosen func(n *graph.Node, shape string, names []string) string

	matrices []matrixShape // cooperative matrices

	uses   func(n *graph.Node, c matMulChoice) // is told of every matmul that is lowered; may be nil
	broken map[string]bool                     // kernels that failed their test on this device, as choices name them
}

// unsupported is the error for a node that a lowering has no kernel for.
func (d *deviceCaps) unsupported(n *graph.Node, format string, args ...any) error {
	return &backend.UnsupportedError{Device: d.name, Node: n.String(), Reason: fmt.Sprintf(format, args...)}
}

// shader is a compiled kernel as the pipelines need it.
type shader struct {
	spirv     []byte
	bindings  int
	pushBytes int
	specs     int // number of specialization constants

	group        [3]uint32 // threads
	sharedBytes  int
	capabilities []string // as SPIR-V names them
}

// launch is a dispatch that was checked, with its push constants as bytes.
type launch struct {
	dispatch
	node int // index in the program
	key  pipelineKey
	data []byte

	// Of a launch that stands for others (merge.go):
	covers  int              // how many of the launches after it
	windows [][]*graph.Value // what the first bindings are ranges over
	table   []uint32         // the last binding
	tableAt int64            // where in the program's tables
}

// lowerProgram lowers every node and checks what comes back against the shaders and the device.
func lowerProgram(d *deviceCaps, p *graph.Program, lower lowerFunc, lookup func(string) (shader, bool)) ([]launch, error) {
	var launches []launch
	var unsupported []error
	for i, n := range p.Nodes() {
		dispatches, err := lower(d, n)
		if errors.Is(err, errors.ErrUnsupported) {
			unsupported = append(unsupported, err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("vulkan: program %s: %s: %w", p.Name(), n, err)
		}
		for _, dis := range dispatches {
			dis.kernel = d.variant(dis.kernel, lookup)
			if err := d.checkKernel(n, dis.kernel, lookup); err != nil {
				unsupported = append(unsupported, err)
				break
			}
			l, err := checkDispatch(d, dis, lookup)
			if err != nil {
				return nil, fmt.Errorf("vulkan: program %s: %s: %w", p.Name(), n, err)
			}
			l.node = i
			launches = append(launches, l)
		}
	}
	return launches, unsupportedNodes(unsupported)
}

// manyUnsupported is an UnsupportedError for each node that a device cannot run; it tells the first three.
type manyUnsupported []error

func (m manyUnsupported) Error() string {
	const told = 3
	s := errors.Join(m[:min(told, len(m))]...).Error()
	if len(m) > told {
		s += fmt.Sprintf("\nand %d more of the program's operators", len(m)-told)
	}
	return s
}

func (m manyUnsupported) Unwrap() []error { return m }

func unsupportedNodes(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return manyUnsupported(errs)
}

// allows tells whether a workgroup may have such a size.
func (d *deviceCaps) allows(group [3]uint32) bool {
	return group[0]*group[1]*group[2] <= d.maxInvocations &&
		group[0] <= d.maxGroupSize[0] && group[1] <= d.maxGroupSize[1] && group[2] <= d.maxGroupSize[2]
}

// variant gives, on a device that does not allow a kernel's threads, its variant for such devices.
func (d *deviceCaps) variant(kernel string, lookup func(string) (shader, bool)) string {
	s, _ := lookup(kernel)
	if small := fmt.Sprintf("%s_%d", kernel, floorInvocations); !d.allows(s.group) {
		if _, ok := lookup(small); ok {
			return small
		}
	}
	return kernel
}

// lacks says which limit or feature of the device keeps a kernel from running, "" if none does.
func (d *deviceCaps) lacks(s shader) string {
	if !d.allows(s.group) {
		return fmt.Sprintf("its workgroup has %v threads, the device allows %v and %d in all (maxComputeWorkGroupSize, maxComputeWorkGroupInvocations)",
			s.group, d.maxGroupSize, d.maxInvocations)
	}
	if s.sharedBytes > int(d.sharedBytes) {
		return fmt.Sprintf("it has %d bytes of shared memory, the device allows %d (maxComputeSharedMemorySize)", s.sharedBytes, d.sharedBytes)
	}
	known := map[string]bool{
		"GroupNonUniformVote": d.subgroupVote, "GroupNonUniformArithmetic": d.subgroupArith, "GroupNonUniformBallot": d.subgroupBallot,
		"GroupNonUniformShuffle": d.subgroupShuffle, "GroupNonUniformClustered": d.subgroupClustered,
		"VulkanMemoryModel": len(d.matrices) > 0, "CooperativeMatrixKHR": len(d.matrices) > 0,
		"BFloat16TypeKHR": d.hasMatrices(graph.BF16), "BFloat16CooperativeMatrixKHR": d.hasMatrices(graph.BF16),
		"StorageBuffer16BitAccess": d.storage16, "Int16": d.int16, "Float16": d.float16, "Int8": d.int8,
	}
	for _, c := range s.capabilities {
		if has, ok := known[c]; ok && !has {
			return "it needs " + c + ", which the device lacks or is not to be used"
		}
	}
	return ""
}

// hasMatrices tells whether there are cooperative matrices of a format.
func (d *deviceCaps) hasMatrices(in graph.DType) bool {
	return slices.ContainsFunc(d.matrices, func(s matrixShape) bool { return s.In == in })
}

// has tells whether the device runs a kernel, or its variant for few threads.
func (d *deviceCaps) has(kernel string) bool {
	s, ok := lookupShader(d.variant(kernel, lookupShader))
	return ok && d.lacks(s) == "" && !d.broken[kernel]
}

// checkKernel names the limit and the operator where the device cannot run a kernel.
func (d *deviceCaps) checkKernel(n *graph.Node, kernel string, lookup func(string) (shader, bool)) error {
	s, _ := lookup(kernel) // one that is absent is checkDispatch's
	if why := d.lacks(s); why != "" {
		return d.unsupported(n, "kernel %s: %s", kernel, why)
	}
	return nil
}

func checkDispatch(d *deviceCaps, dis dispatch, lookup func(string) (shader, bool)) (launch, error) {
	fail := func(format string, args ...any) (launch, error) {
		return launch{}, fmt.Errorf("kernel %s: %s", dis.kernel, fmt.Sprintf(format, args...))
	}
	s, ok := lookup(dis.kernel)
	if !ok {
		return fail("no such shader")
	}
	var data []byte
	if dis.push != nil {
		var err error
		if data, err = binary.Append(nil, binary.NativeEndian, dis.push); err != nil {
			return fail("push constants: %v", err)
		}
	}
	switch {
	case len(data) != s.pushBytes || len(data) > floorPushBytes:
		return fail("%d bytes of push constants, the shader has %d, devices at least %d", len(data), s.pushBytes, floorPushBytes)
	case len(dis.bind) != s.bindings || len(dis.bind) > floorBindings:
		return fail("%d bindings, the shader has %d, devices at least %d", len(dis.bind), s.bindings, floorBindings)
	case len(dis.spec) > s.specs:
		return fail("%d specialization constants, the shader has %d", len(dis.spec), s.specs)
	}
	for i, g := range dis.groups {
		if g == 0 || g > d.maxGroups[i] {
			return fail("%v workgroups, the device allows 1 to %v", dis.groups, d.maxGroups)
		}
	}
	for _, v := range dis.bind {
		if v != nil && int64(storageBytes(v.Bytes())) > d.maxBindBytes {
			return fail("tensor %q has %d bytes, devices bind at most %d (maxStorageBufferRange)", v.Name(), v.Bytes(), d.maxBindBytes)
		}
	}
	return launch{dispatch: dis, key: keyOf(dis), data: data}, nil
}

// storageBytes is the size of a tensor's storage: kernels without 16-bit storage write whole words.
func storageBytes(n int) int { return (n + 3) / 4 * 4 }

// pipelineKey tells pipelines apart.
type pipelineKey struct {
	kernel        string
	spec          string // the constants' bytes
	subgroupSize  uint32
	fullSubgroups bool
	statistics    bool
	disassembly   bool
}

func keyOf(d dispatch) pipelineKey {
	spec, err := binary.Append(nil, binary.NativeEndian, d.spec)
	if err != nil {
		panic("vulkan: specialization constants cannot be encoded")
	}
	return pipelineKey{kernel: d.kernel, spec: string(spec), subgroupSize: d.subgroupSize, fullSubgroups: d.fullSubgroups}
}

// constants is the reverse of keyOf.
func (k pipelineKey) constants() []uint32 {
	spec := make([]uint32, len(k.spec)/4)
	for i := range spec {
		spec[i] = binary.NativeEndian.Uint32([]byte(k.spec[4*i : 4*i+4]))
	}
	return spec
}
