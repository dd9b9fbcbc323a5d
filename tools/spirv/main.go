// Command spirv compiles the GLSL in shaders/ to the SPIR-V that is committed and embedded there, and writes the manifest that says what
// each kernel expects of its host and its device.
//
//	go run ./tools/spirv           compile, optimise, validate and describe every kernel whose source has changed; with -all, all
//	go run ./tools/spirv -check    say what is stale; exit status 1 if anything is
//
// Kernels that a compiler is too old for are compiled by the tools that the command in VKTRAIN_NEWER_TOOLS runs; without it they stay as they are.
//
// -check needs no tools: it compares hashes, and the manifest with the binaries. With the tools that made the manifest
// installed, it also compiles everything again and compares.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vktrain/vktrain/tools/spirv/build"
)

func main() {
	check := flag.Bool("check", false, "say what is stale, and write nothing")
	all := flag.Bool("all", false, "compile kernels again whose sources have not changed")
	dir := flag.String("dir", "", "the folder with the GLSL (default: shaders, or . inside it)")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: spirv [-check] [-all] [-dir DIR]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*dir, *check, *all); err != nil {
		fmt.Fprintln(os.Stderr, "spirv:", err)
		os.Exit(1)
	}
}

func run(dir string, check, all bool) error {
	if dir == "" {
		dir = "shaders"
		if found, _ := filepath.Glob("*.comp"); len(found) > 0 {
			dir = "."
		}
	}
	if check {
		return checkAll(dir)
	}
	tools, err := build.FindToolchain()
	if err != nil {
		return err
	}
	tools.Reuse = !all
	m, err := tools.All(dir, runtime.NumCPU())
	if err != nil {
		return err
	}
	if err := build.Write(dir, m); err != nil {
		return err
	}
	fmt.Printf("%d kernels, %s\n", len(m.Kernels), m.Compiler)
	if len(tools.Kept) > 0 {
		fmt.Printf("not compiled, since they have not changed and need a newer compiler (set %s): %s\n", build.NewerTools, strings.Join(tools.Kept, " "))
	}
	return nil
}

func checkAll(dir string) error {
	stale, err := build.Stale(dir)
	if err != nil {
		return err
	}
	tools, err := build.FindToolchain()
	if err == nil && len(stale) == 0 {
		stale, err = tools.Differs(dir, runtime.NumCPU())
		if len(tools.Kept) > 0 {
			fmt.Printf("not compiled again, since they need a newer compiler (set %s): %s\n", build.NewerTools, strings.Join(tools.Kept, " "))
		}
	}
	if err != nil && !errors.Is(err, build.ErrNoTools) {
		return err
	}
	for _, line := range stale {
		fmt.Println(line)
	}
	if len(stale) > 0 {
		return fmt.Errorf("%d stale: run `go generate ./shaders`", len(stale))
	}
	return nil
}
