package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/train"
)

// promptFlag may be empty.
const promptFlag = "prompt"

// generateFlags are those of `vktrain generate`.
type generateFlags struct {
	device deviceFlags
	text   train.Continuation
}

func newGenerateCommand() *cobra.Command {
	var f generateFlags
	c := &cobra.Command{
		Use:   "generate DIR",
		Short: "Let a trained model continue a text",
		Args:  arguments(1, 1, "the folder of a run"),
		RunE:  func(c *cobra.Command, args []string) error { return generate(c.Context(), c.OutOrStdout(), args[0], f) },
	}
	f.device.add(c)
	flags := c.Flags()
	flags.StringVar(&f.text.Prompt, promptFlag, "", "`TEXT` to continue; a new text without it")
	flags.IntVar(&f.text.Tokens, "tokens", 200, "add at most `N` tokens")
	flags.Float64Var(&f.text.Sampler.Temperature, "temperature", 0.8, "divide the logits by `T`; 0 takes the likeliest token")
	flags.IntVar(&f.text.Sampler.TopK, "top-k", 0, "choose among the `K` likeliest tokens; 0: among all")
	flags.Float64Var(&f.text.Sampler.TopP, "top-p", 1, "choose among the likeliest tokens that together have the probability `P`; 0 or 1: among all")
	flags.Uint64Var(&f.text.Seed, "seed", 1, "`N` of the random draws")
	flags.BoolVar(&f.text.PastEnd, "past-end", false, "go on with another text where one ends")
	return c
}

func generate(ctx context.Context, out io.Writer, dir string, f generateFlags) error {
	if f.text.Tokens < 1 {
		return usagef("--tokens: %d is too small: use at least 1", f.text.Tokens)
	}
	if err := f.text.Sampler.Validate(); err != nil {
		return usagef("--%v", err)
	}
	f.text.Each = func(text string) error {
		_, err := io.WriteString(out, text)
		return err
	}
	return f.device.withModel(ctx, dir, func(_ backend.Backend, model *train.Checkpoint) error {
		fmt.Fprint(out, f.text.Prompt)
		_, err := model.Write(ctx, f.text)
		fmt.Fprintln(out)
		return err
	})
}
