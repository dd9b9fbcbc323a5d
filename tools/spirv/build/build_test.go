package build_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vktrain/vktrain/tools/spirv/build"
)

const kernel = `#version 450
#extension GL_GOOGLE_include_directive : require
#include "size.glsl"
layout(local_size_x = SIZE) in;
layout(binding = 0) buffer B { float x[]; };
void main() { x[gl_GlobalInvocationID.x] += STEP; }
`

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

func TestVariants(t *testing.T) {
	dir := folder(t, map[string]string{
		"b.comp": "//! kernel b_large SIZE=128 KIND=2\n//! kernel b_small SIZE=64\n", "a.comp": "void main() {}", "c.glsl": "",
	})
	got, err := build.Variants(dir)
	require.NoError(t, err)
	require.Equal(t, []build.Variant{
		{Name: "a", Source: "a.comp"},
		{Name: "b_large", Source: "b.comp", Defines: []string{"SIZE=128", "KIND=2"}},
		{Name: "b_small", Source: "b.comp", Defines: []string{"SIZE=64"}},
	}, got)
	_, err = build.Variants(folder(t, map[string]string{"a.comp": "", "b.comp": "//! kernel a\n"}))
	require.ErrorContains(t, err, "both define kernel a")
}

// A kernel that the compiler is too old for stays as it is while its source does, and is named where it cannot.
func TestKernelsOfNewerCompilers(t *testing.T) {
	dir := folder(t, map[string]string{"k.comp": "//! kernel k STEP=1.0\n" + kernel, "size.glsl": "#define SIZE 64"})
	source := filepath.Join(dir, "k.comp")
	require.NoError(t, os.WriteFile(source, []byte("//! glslang 1\n//! kernel k STEP=1.0\n"+kernel), 0o644))
	variants, err := build.Variants(dir)
	require.NoError(t, err)
	require.Equal(t, 1, variants[0].Newer)
	c := tools(t)
	require.Same(t, c, c.For(variants[0]))
	variants[0].Newer = 1000
	require.Nil(t, c.For(variants[0]))

	m, err := c.All(dir, 1)
	require.NoError(t, err)
	require.Empty(t, c.Kept)
	require.Equal(t, c.CompilerVersion, m.Kernels[0].Compiler)
	require.NoError(t, build.Write(dir, m))

	require.NoError(t, os.WriteFile(source, []byte("//! glslang 1000\n//! kernel k STEP=1.0\n"+kernel), 0o644))
	_, err = c.All(dir, 1)
	require.ErrorContains(t, err, "kernel k: k.comp needs glslang 1000 or newer")
	m.Kernels[0].SourceHash, err = build.SourceHash(dir, variants[0])
	require.NoError(t, err)
	require.NoError(t, build.Write(dir, m))
	again, err := c.All(dir, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"k"}, c.Kept)
	require.Equal(t, m.Kernels, again.Kernels)
	stale, err := build.Stale(dir)
	require.NoError(t, err)
	require.Empty(t, stale)
}

// What has not changed is not compiled again, unless its binary is another one by now.
func TestUnchangedKernelsAreReused(t *testing.T) {
	dir := folder(t, map[string]string{"k.comp": "//! kernel k STEP=1.0\n" + kernel, "size.glsl": "#define SIZE 64"})
	c := tools(t)
	c.Reuse = true
	first, err := c.All(dir, 1)
	require.NoError(t, err)
	require.NoError(t, build.Write(dir, first))
	marked, err := build.Read(dir)
	require.NoError(t, err)
	marked.Kernels[0].Instructions = 12345 // shows where the kernel comes from
	marked.Kernels[0].SPIRV = first.Kernels[0].SPIRV
	require.NoError(t, build.Write(dir, marked))
	again, err := c.All(dir, 1)
	require.NoError(t, err)
	require.Equal(t, 12345, again.Kernels[0].Instructions)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "spv", "k.spv"), []byte("junk"), 0o644))
	again, err = c.All(dir, 1)
	require.NoError(t, err)
	require.Equal(t, first.Kernels, again.Kernels)
}

func TestSourceHashCoversEverything(t *testing.T) {
	hash := func(source, include string, defines ...string) string {
		dir := folder(t, map[string]string{"k.comp": source, "size.glsl": include, "deep.glsl": "// deep"})
		h, err := build.SourceHash(dir, build.Variant{Name: "k", Source: "k.comp", Defines: defines})
		require.NoError(t, err)
		return h
	}
	base := hash(kernel, "#define SIZE 64", "STEP=1.0")
	require.Equal(t, base, hash(kernel, "#define SIZE 64", "STEP=1.0"))
	require.NotEqual(t, base, hash(kernel+" ", "#define SIZE 64", "STEP=1.0"))
	require.NotEqual(t, base, hash(kernel, "#define SIZE 32", "STEP=1.0"))
	require.NotEqual(t, base, hash(kernel, "#define SIZE 64", "STEP=2.0"))
	require.NotEqual(t, base, hash(kernel, "#define SIZE 64\n#include \"deep.glsl\"", "STEP=1.0"))
	_, err := build.SourceHash(folder(t, map[string]string{"k.comp": kernel}), build.Variant{Name: "k", Source: "k.comp"})
	require.ErrorContains(t, err, "size.glsl")
}

func tools(t *testing.T) *build.Toolchain {
	t.Helper()
	c, err := build.FindToolchain()
	if errors.Is(err, build.ErrNoTools) && os.Getenv("VKTRAIN_REQUIRE_TOOLS") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	return c
}

func TestStaleNamesWhatChanged(t *testing.T) {
	dir := folder(t, map[string]string{"k.comp": "//! kernel k STEP=1.0\n" + kernel, "size.glsl": "#define SIZE 64"})
	c := tools(t)
	compile := func() {
		m, err := c.All(dir, 1)
		require.NoError(t, err)
		require.NoError(t, build.Write(dir, m))
	}
	stale := func() []string {
		list, err := build.Stale(dir)
		require.NoError(t, err)
		return list
	}
	compile()
	require.Empty(t, stale())
	differ, err := c.Differs(dir, 1)
	require.NoError(t, err)
	require.Empty(t, differ, "the compiler gives the same binary again")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "size.glsl"), []byte("#define SIZE 32"), 0o644))
	require.Len(t, stale(), 1)
	require.Contains(t, stale()[0], "k.comp or what it includes has changed")
	compile()

	binary := filepath.Join(dir, "spv", "k.spv")
	data, err := os.ReadFile(binary)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(binary, append(data, 0, 0, 1, 0), 0o644))
	require.Contains(t, stale()[0], "the binary is not the one")
	require.NoError(t, os.Remove(binary))
	require.Contains(t, stale()[0], "has no binary")
	compile()

	require.NoError(t, os.Rename(filepath.Join(dir, "k.comp"), filepath.Join(dir, "l.comp")))
	require.Len(t, stale(), 1, "the kernel's name is in the file, but the hash covers the file's")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "l.comp"), []byte("//! kernel l STEP=1.0\n"+kernel), 0o644))
	require.ElementsMatch(t, []string{"kernel l: is not in the manifest", "kernel k: has no source any more"}, stale())
	compile()
	require.NoFileExists(t, binary)
}

func TestCompilerErrorsAreShown(t *testing.T) {
	dir := folder(t, map[string]string{"bad.comp": "#version 450\nvoid main() { undeclared = 1; }\n"})
	_, err := tools(t).All(dir, 1)
	require.ErrorContains(t, err, "kernel bad")
	require.ErrorContains(t, err, "undeclared")
}
