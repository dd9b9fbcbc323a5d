package vulkan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const binding = "github.com/vulkan-go/vulkan"

// unsafeCalls are the binding's functions that take a slice of structs: the copy in C that they hand to the driver is freed by a
// finalizer, which may run during the call. unsafeStructs hold such a slice, with the same danger while they are copied.
var (
	unsafeCalls = strings.Fields(`
		CmdBeginRenderPass CmdBlitImage CmdClearAttachments CmdClearColorImage CmdClearDepthStencilImage CmdCopyBuffer CmdCopyBufferToImage
		CmdCopyImage CmdCopyImageToBuffer CmdPipelineBarrier CmdResolveImage CmdSetScissor CmdSetViewport CmdWaitEvents CreateComputePipelines
		CreateGraphicsPipelines CreateSharedSwapchains EnumerateDeviceExtensionProperties EnumerateDeviceLayerProperties
		EnumerateInstanceExtensionProperties EnumerateInstanceLayerProperties FlushMappedMemoryRanges GetImageSparseMemoryRequirements
		GetPhysicalDeviceDisplayPlaneProperties GetPhysicalDeviceDisplayProperties GetDisplayModeProperties
		GetPhysicalDeviceQueueFamilyProperties GetPhysicalDeviceSparseImageFormatProperties GetPhysicalDeviceSurfaceFormats
		InvalidateMappedMemoryRanges QueueBindSparse QueueSubmit UpdateDescriptorSets`)
	unsafeStructs = strings.Fields(`
		AccelerationStructureCreateInfoNVX BaseInStructure BaseOutStructure BindImageMemoryDeviceGroupInfo BindSparseInfo
		CmdProcessCommandsInfoNVX CoarseSampleOrderCustomNV CommandBufferBeginInfo DescriptorPoolCreateInfo
		DescriptorSetLayoutCreateInfo DescriptorUpdateTemplateCreateInfo DeviceCreateInfo DeviceGroupRenderPassBeginInfo
		DrmFormatModifierPropertiesList GraphicsPipelineCreateInfo ImageDrmFormatModifierExplicitCreateInfo
		IndirectCommandsLayoutCreateInfoNVX PipelineColorBlendStateCreateInfo PipelineDiscardRectangleStateCreateInfo
		PipelineLayoutCreateInfo PipelineShaderStageCreateInfo PipelineVertexInputDivisorStateCreateInfo
		PipelineVertexInputStateCreateInfo PipelineViewportCoarseSampleOrderStateCreateInfoNV
		PipelineViewportExclusiveScissorStateCreateInfoNV PipelineViewportShadingRateImageStateCreateInfoNV
		PipelineViewportStateCreateInfo PipelineViewportSwizzleStateCreateInfoNV PipelineViewportWScalingStateCreateInfoNV
		PresentRegion PresentRegions PresentTimesInfoGOOGLE RaytracingPipelineCreateInfoNVX RenderPassCreateInfo
		RenderPassCreateInfo2 RenderPassInputAttachmentAspectCreateInfo RenderPassSampleLocationsBeginInfo SampleLocationsInfo
		SparseBufferMemoryBindInfo SparseImageMemoryBindInfo SparseImageOpaqueMemoryBindInfo SpecializationInfo SubpassDescription
		SubpassDescription2 WriteDescriptorSet`)
)

// bindingName gives the name under which a file imports the binding, "" if it does not.
func bindingName(f *ast.File) string {
	for _, imp := range f.Imports {
		if path, _ := strconv.Unquote(imp.Path.Value); path == binding {
			if imp.Name != nil {
				return imp.Name.Name
			}
			return "vulkan"
		}
	}
	return ""
}

// unsafeUses lists what a file uses of the forbidden names.
func unsafeUses(fset *token.FileSet, f *ast.File, forbidden []string) []string {
	name := bindingName(f)
	var uses []string
	if name == "" {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == name && slices.Contains(forbidden, sel.Sel.Name) {
			uses = append(uses, fset.Position(sel.Pos()).String()+": "+sel.Sel.Name)
		}
		return true
	})
	return uses
}

// The whole module keeps off them, vkx included: it has its own C for each.
func TestNothingUsesTheBindingsUnsafeCalls(t *testing.T) {
	forbidden := slices.Concat(unsafeCalls, unsafeStructs)
	users := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		if bindingName(f) != "" {
			users++
		}
		require.Empty(t, unsafeUses(fset, f, forbidden), "go through vkx instead")
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, users, 5, "the walk found the code that uses the binding")
}

func TestLintFindsAnUnsafeCall(t *testing.T) {
	const source = `package p
import v "github.com/vulkan-go/vulkan"
func f(q v.Queue) { v.QueueSubmit(q, 1, []v.SubmitInfo{{}}, nil); v.QueueWaitIdle(q); _ = v.DeviceCreateInfo{} }`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"p.go:3:21: QueueSubmit", "p.go:3:91: DeviceCreateInfo"}, unsafeUses(fset, f, slices.Concat(unsafeCalls, unsafeStructs)))
}

// The lists are complete: every function and struct of the binding with a slice of structs is on one. It needs the go command to find the
// binding's source, which a test binary that was carried elsewhere does not have.
func TestUnsafeListsAreComplete(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command here; the lists are checked where the test was built")
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", binding).Output()
	require.NoError(t, err)
	root := strings.TrimSpace(string(dir))
	fset := token.NewFileSet()
	types, err := parser.ParseFile(fset, filepath.Join(root, "types.go"), nil, 0)
	require.NoError(t, err)
	structs := map[string]*ast.StructType{}
	for _, decl := range types.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
			for _, spec := range gen.Specs {
				spec := spec.(*ast.TypeSpec)
				if s, ok := spec.Type.(*ast.StructType); ok {
					structs[spec.Name.Name] = s
				}
			}
		}
	}
	hasStructSlice := func(fields *ast.FieldList) bool {
		return slices.ContainsFunc(fields.List, func(f *ast.Field) bool {
			array, ok := f.Type.(*ast.ArrayType)
			if !ok || array.Len != nil {
				return false
			}
			elem, ok := array.Elt.(*ast.Ident)
			return ok && structs[elem.Name] != nil
		})
	}
	for name, s := range structs {
		if hasStructSlice(s.Fields) {
			require.Contains(t, unsafeStructs, name)
		}
	}
	calls, err := parser.ParseFile(fset, filepath.Join(root, "vulkan.go"), nil, 0)
	require.NoError(t, err)
	for _, decl := range calls.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && hasStructSlice(f.Type.Params) {
			require.Contains(t, unsafeCalls, f.Name.Name)
		}
	}
}
