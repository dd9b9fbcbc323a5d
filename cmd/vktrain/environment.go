package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// environment are the variables that users may set. Tests have some of their own.
var environment = []struct{ name, text string }{
	{"VKTRAIN_LIMITS", `Take a GPU for a lesser one: NAME=VALUE,... such as shared=16K,invocations=128,16bit=off, for bug reports; a wrong
name lists them all. What is measured then is kept apart.`},
	{"VKTRAIN_NO_COOPMAT", "1: leave cooperative matrices alone, as --no-coopmat does."},
	{"VKTRAIN_VALIDATE", `1: the Khronos validation layer looks at every call, and what it says is an error; access: and at every access of a
kernel, which is slow. The layer must be installed.`},
	{"XDG_CACHE_HOME", `Compiled and measured kernels, and what was found wrong with a driver, are kept in vktrain below it; without it where the
system has such files ($HOME/.cache, $HOME/Library/Caches, %LocalAppData%).`},
	{"VK_DRIVER_FILES", `Of the Vulkan loader: the drivers to use, as paths of their .json files; VK_ICD_FILENAMES with older loaders.`},
}

// newEnvironmentTopic is `vktrain help environment`.
func newEnvironmentTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Environment variables that vktrain looks at:\n")
	for _, v := range environment {
		fmt.Fprintf(&b, "\n%s\n  %s\n", v.name, strings.ReplaceAll(v.text, "\n", "\n  "))
	}
	return &cobra.Command{Use: "environment", Short: "Environment variables", Long: strings.TrimSuffix(b.String(), "\n")}
}
