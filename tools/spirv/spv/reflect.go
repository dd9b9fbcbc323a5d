package spv

import (
	"fmt"
	"slices"

	"github.com/vktrain/vktrain/shaders/manifest"
)

// Reflect fills in what a compute kernel's binary says of it: everything in manifest.Kernel but the name, the source and the hashes. It
// is an error if the binary has several entry points, another descriptor set than 0, gaps between its bindings or its
// specialization constants, or shared memory whose size a specialization constant sets (Metal cannot have that).
func Reflect(data []byte) (manifest.Kernel, error) {
	m, err := parse(data)
	if err != nil {
		return manifest.Kernel{}, err
	}
	k := manifest.Kernel{
		SPIRV: data, Extensions: m.extensions, FloatAtomics: m.floatAtomics, Instructions: m.instructions,
		Version: fmt.Sprintf("%d.%d", m.version>>16&0xff, m.version>>8&0xff),
	}
	if len(m.entryPoints) != 1 || m.entryPoints[0].arg[0] != executionModelGLCS || text(m.entryPoints[0].arg[2:]) != "main" {
		return k, fmt.Errorf("spv: want one compute entry point, main")
	}
	for _, c := range m.capabilities {
		name, ok := capabilityNames[c]
		if !ok {
			name = fmt.Sprintf("capability %d", c)
		}
		k.Capabilities = append(k.Capabilities, name)
	}
	slices.Sort(k.Capabilities)
	for _, step := range []func(*manifest.Kernel) error{m.localSize, m.specConstants, m.interfaces} {
		if err := step(&k); err != nil {
			return k, err
		}
	}
	return k, nil
}

// localSize reads the workgroup's size: of the built-in constant if there is one, which wins over the execution mode.
func (m *module) localSize(k *manifest.Kernel) error {
	for _, in := range m.modes {
		if in.arg[1] == modeLocalSize && len(in.arg) == 5 {
			copy(k.LocalSize[:], in.arg[2:])
		}
	}
	for id, list := range m.decorations {
		if b, ok := find(list, decBuiltIn); !ok || b != builtInWorkgroupSize {
			continue
		}
		composite := m.defs[id]
		if len(composite.arg) != 5 {
			return fmt.Errorf("spv: the workgroup's size %%%d is no vector of three constants", id)
		}
		for i, part := range composite.arg[2:] {
			v, _, err := m.constant(part)
			if err != nil {
				return err
			}
			k.LocalSize[i] = v
		}
	}
	if k.LocalSize[0]*k.LocalSize[1]*k.LocalSize[2] == 0 {
		return fmt.Errorf("spv: no workgroup size")
	}
	return nil
}

// constant gives a scalar constant's bits, and whether a specialization constant sets them.
func (m *module) constant(id uint32) (bits uint32, spec bool, err error) {
	switch in := m.defs[id]; in.op {
	case opConstant:
		return in.arg[2], false, nil
	case opConstantTrue:
		return 1, false, nil
	case opConstantFalse:
		return 0, false, nil
	case opSpecConstant:
		return in.arg[2], true, nil
	case opSpecConstantTrue:
		return 1, true, nil
	case opSpecConstantFalse:
		return 0, true, nil
	}
	return 0, true, fmt.Errorf("spv: %%%d is not a plain constant", id)
}

func (m *module) specConstants(k *manifest.Kernel) error {
	for _, id := range m.specs {
		spec, ok := find(m.decorations[id], decSpecID)
		if !ok {
			continue
		}
		bits, _, err := m.constant(id)
		if err != nil {
			return err
		}
		k.Spec = append(k.Spec, manifest.SpecConst{ID: spec, Name: m.names[id], Type: m.typeName(m.defs[id].arg[0]), Default: bits})
	}
	slices.SortFunc(k.Spec, func(a, b manifest.SpecConst) int { return int(a.ID) - int(b.ID) })
	for i, s := range k.Spec {
		if int(s.ID) != i {
			return fmt.Errorf("spv: specialization constants are numbered with gaps: %q is %d, want %d", s.Name, s.ID, i)
		}
	}
	return nil
}

// interfaces reads the variables: storage buffers, push constants, shared memory.
func (m *module) interfaces(k *manifest.Kernel) error {
	access := map[int]string{}
	for _, id := range m.variables {
		pointer := m.defs[m.defs[id].arg[0]]
		if pointer.op != opTypePointer {
			return fmt.Errorf("spv: variable %%%d has no pointer type", id)
		}
		pointee := pointer.arg[2]
		switch pointer.arg[1] {
		case classStorageBuffer:
			binding, bound := find(m.decorations[id], decBinding)
			set, _ := find(m.decorations[id], decDescriptorSet)
			if !bound || set != 0 {
				return fmt.Errorf("spv: storage buffer %q is not in set 0", m.names[id])
			}
			access[int(binding)] = m.access(id, pointee)
		case classPushConstant:
			if err := m.pushConstants(k, pointee); err != nil {
				return err
			}
		case classWorkgroup:
			n, err := m.size(pointee)
			if err != nil {
				return fmt.Errorf("shared %q: %w", m.names[id], err)
			}
			k.SharedBytes += n
		}
	}
	k.Bindings = len(access)
	k.Access = make([]string, len(access))
	for i := range k.Access {
		a, ok := access[i]
		if !ok {
			return fmt.Errorf("spv: bindings have gaps: %d of %d is missing", i, len(access))
		}
		k.Access[i] = a
	}
	return nil
}

// access tells from the decorations of a buffer and its members what the kernel may do with it.
func (m *module) access(variable, block uint32) string {
	members := uint32(len(m.defs[block].arg) - 1)
	all := func(kind uint32) bool {
		if _, ok := find(m.decorations[variable], kind); ok {
			return true
		}
		for i := range members {
			if _, ok := find(m.memberDecs[memberKey{block, i}], kind); !ok {
				return false
			}
		}
		return true
	}
	switch {
	case all(decNonWritable):
		return "r"
	case all(decNonReadable):
		return "w"
	}
	return "rw"
}

func (m *module) pushConstants(k *manifest.Kernel, block uint32) error {
	if m.defs[block].op != opTypeStruct {
		return fmt.Errorf("spv: the push-constant block is no struct")
	}
	for i, member := range m.defs[block].arg[1:] {
		key := memberKey{block, uint32(i)}
		offset, ok := find(m.memberDecs[key], decOffset)
		if !ok {
			return fmt.Errorf("spv: push constant %q has no offset", m.memberNames[key])
		}
		n, err := m.size(member)
		if err != nil {
			return err
		}
		k.Push = append(k.Push, manifest.Field{Name: m.memberNames[key], Type: m.typeName(member), Offset: int(offset), Size: n})
		k.PushBytes = max(k.PushBytes, int(offset)+n)
	}
	return nil
}

// size of a type in bytes, packed; an array's length must be a plain constant.
func (m *module) size(id uint32) (int, error) {
	switch in := m.defs[id]; in.op {
	case opTypeBool:
		return 4, nil
	case opTypeInt, opTypeFloat:
		return int(in.arg[1]) / 8, nil
	case opTypeVector:
		n, err := m.size(in.arg[1])
		return n * int(in.arg[2]), err
	case opTypeArray:
		length, spec, err := m.constant(in.arg[2])
		if err != nil || spec {
			return 0, fmt.Errorf("spv: an array's length depends on a specialization constant")
		}
		n, err := m.size(in.arg[1])
		return n * int(length), err
	case opTypeStruct:
		sum := 0
		for _, member := range in.arg[1:] {
			n, err := m.size(member)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}
	return 0, fmt.Errorf("spv: type %%%d has no size", id)
}

// typeName is a type's name in GLSL.
func (m *module) typeName(id uint32) string {
	switch in := m.defs[id]; in.op {
	case opTypeBool:
		return "bool"
	case opTypeInt:
		if in.arg[2] == 0 {
			return "uint"
		}
		return "int"
	case opTypeFloat:
		return "float"
	case opTypeVector:
		prefix := map[string]string{"uint": "u", "int": "i", "bool": "b"}[m.typeName(in.arg[1])]
		return fmt.Sprintf("%svec%d", prefix, in.arg[2])
	}
	return fmt.Sprintf("type %d", m.defs[id].op)
}
