//go:build cgo

package vulkan

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/vktrain/vktrain/backend/vulkan/internal/vkx"
)

// pipeline is a kernel with its constants, compiled. It lives as long as the device.
type pipeline struct {
	handle vk.Pipeline
	layout kernelLayout
}

// kernelLayout is shared by all kernels with as many bindings and push constants.
type kernelLayout struct {
	set      vk.DescriptorSetLayout
	pipeline vk.PipelineLayout
}

type layoutShape struct{ bindings, pushBytes int }

// pipelineSet builds pipelines when they are first asked for, in parallel, and keeps them.
type pipelineSet struct {
	dev    *vkx.Device
	ctx    context.Context // Options.Context
	lookup func(string) (shader, bool)
	cache  vk.PipelineCache

	mu        sync.Mutex
	pipelines map[pipelineKey]*pipeline
	modules   map[string]vk.ShaderModule
	sets      map[int]vk.DescriptorSetLayout
	layouts   map[layoutShape]vk.PipelineLayout
	built     int // since the cache was last saved
}

// newPipelineSet starts from a cache's content; content that the driver does not take is dropped.
func newPipelineSet(ctx context.Context, dev *vkx.Device, lookup func(string) (shader, bool), cached []byte) (*pipelineSet, error) {
	s := &pipelineSet{
		ctx: ctx, dev: dev, lookup: lookup, pipelines: map[pipelineKey]*pipeline{}, modules: map[string]vk.ShaderModule{},
		sets: map[int]vk.DescriptorSetLayout{}, layouts: map[layoutShape]vk.PipelineLayout{},
	}
	err := s.newCache(cached)
	if err != nil && len(cached) > 0 {
		err = s.newCache(nil)
	}
	return s, err
}

func (s *pipelineSet) newCache(content []byte) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	info := vk.PipelineCacheCreateInfo{SType: vk.StructureTypePipelineCacheCreateInfo}
	defer info.Free()
	if len(content) > 0 {
		pins.Pin(&content[0])
		info.InitialDataSize, info.PInitialData = uint(len(content)), unsafe.Pointer(&content[0])
	}
	var cache vk.PipelineCache
	if r := vk.CreatePipelineCache(s.dev.Handle, &info, nil, &cache); r != vk.Success {
		return fmt.Errorf("vulkan: %w", vkx.Check("vkCreatePipelineCache", r))
	}
	s.cache = cache
	return nil
}

// get returns the pipelines of keys, after building those that are new.
func (s *pipelineSet) get(keys []pipelineKey) (map[pipelineKey]*pipeline, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []pipelineKey
	seen := map[pipelineKey]bool{}
	for _, k := range keys {
		if s.pipelines[k] == nil && !seen[k] {
			missing = append(missing, k)
		}
		seen[k] = true
	}
	if err := s.build(missing); err != nil {
		return nil, err
	}
	found := make(map[pipelineKey]*pipeline, len(seen))
	for k := range seen {
		found[k] = s.pipelines[k]
	}
	return found, nil
}

// build makes pipelines on all cores. Layouts and modules come first: only compiling is slow. When the context is done, those in progress are the last,
// and are kept.
func (s *pipelineSet) build(keys []pipelineKey) error {
	configs := make([]vkx.PipelineConfig, len(keys))
	built := make([]*pipeline, len(keys))
	for i, k := range keys {
		sh, ok := s.lookup(k.kernel)
		if !ok {
			return fmt.Errorf("vulkan: no shader %q", k.kernel)
		}
		layout, err := s.layout(sh.bindings, sh.pushBytes)
		if err != nil {
			return err
		}
		module, err := s.module(k.kernel, sh.spirv)
		if err != nil {
			return err
		}
		configs[i] = vkx.PipelineConfig{
			Module: module, Layout: layout.pipeline, Spec: k.constants(),
			SubgroupSize: k.subgroupSize, FullSubgroups: k.fullSubgroups, Statistics: k.statistics, Disassembly: k.disassembly,
		}
		built[i] = &pipeline{layout: layout}
	}
	errs := make([]error, len(keys))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(keys)) {
		workers.Go(func() {
			for i := range next {
				if errs[i] = s.ctx.Err(); errs[i] != nil {
					continue
				}
				built[i].handle, errs[i] = s.dev.NewPipeline(s.cache, configs[i])
				if errs[i] != nil {
					errs[i] = fmt.Errorf("vulkan: kernel %s with constants %v: %w", keys[i].kernel, configs[i].Spec, errs[i])
				}
			}
		})
	}
	for i := range keys {
		next <- i
	}
	close(next)
	workers.Wait()
	for i, k := range keys {
		if errs[i] == nil {
			s.pipelines[k] = built[i]
			s.built++
		}
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil && err == s.ctx.Err() }) {
		return s.ctx.Err() // once
	}
	return errors.Join(errs...)
}

func (s *pipelineSet) layout(bindings, pushBytes int) (kernelLayout, error) {
	set, ok := s.sets[bindings]
	if !ok {
		var err error
		if set, err = s.dev.NewSetLayout(bindings); err != nil {
			return kernelLayout{}, fmt.Errorf("vulkan: %w", err)
		}
		s.sets[bindings] = set
	}
	shape := layoutShape{bindings, pushBytes}
	layout, ok := s.layouts[shape]
	if !ok {
		var err error
		if layout, err = s.dev.NewPipelineLayout(set, pushBytes); err != nil {
			return kernelLayout{}, fmt.Errorf("vulkan: %w", err)
		}
		s.layouts[shape] = layout
	}
	return kernelLayout{set, layout}, nil
}

func (s *pipelineSet) module(name string, spirv []byte) (vk.ShaderModule, error) {
	if m, ok := s.modules[name]; ok {
		return m, nil
	}
	if len(spirv) == 0 || len(spirv)%4 != 0 {
		return nil, fmt.Errorf("vulkan: shader %q has %d bytes of SPIR-V, want a multiple of 4", name, len(spirv))
	}
	code := make([]uint32, len(spirv)/4) // aligned, which an embedded file need not be
	for i := range code {
		code[i] = binary.LittleEndian.Uint32(spirv[4*i:])
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&code[0])
	info := vk.ShaderModuleCreateInfo{SType: vk.StructureTypeShaderModuleCreateInfo, CodeSize: uint(len(spirv)), PCode: code}
	defer info.Free()
	var module vk.ShaderModule
	if r := vk.CreateShaderModule(s.dev.Handle, &info, nil, &module); r != vk.Success {
		return nil, fmt.Errorf("vulkan: shader %q: %w", name, vkx.Check("vkCreateShaderModule", r))
	}
	s.modules[name] = module
	return module, nil
}

// content is what a later run can start from.
func (s *pipelineSet) content() ([]byte, error) {
	var size uint
	if r := vk.GetPipelineCacheData(s.dev.Handle, s.cache, &size, nil); r != vk.Success || size == 0 {
		return nil, vkx.Check("vkGetPipelineCacheData", r)
	}
	data := make([]byte, size)
	r := vk.GetPipelineCacheData(s.dev.Handle, s.cache, &size, unsafe.Pointer(&data[0]))
	if r != vk.Success && r != vk.Incomplete {
		return nil, vkx.Check("vkGetPipelineCacheData", r)
	}
	return data[:size], nil
}

func (s *pipelineSet) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pipelines {
		vk.DestroyPipeline(s.dev.Handle, p.handle, nil)
	}
	for _, m := range s.modules {
		vk.DestroyShaderModule(s.dev.Handle, m, nil)
	}
	for _, l := range s.layouts {
		vk.DestroyPipelineLayout(s.dev.Handle, l, nil)
	}
	for _, l := range s.sets {
		vk.DestroyDescriptorSetLayout(s.dev.Handle, l, nil)
	}
	vk.DestroyPipelineCache(s.dev.Handle, s.cache, nil)
	clear(s.pipelines)
	clear(s.modules)
	clear(s.layouts)
	clear(s.sets)
}
