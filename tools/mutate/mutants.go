package main

// mutant is one deliberate mistake.
type mutant struct {
	what     string
	file     string
	old, new string
	times    int // how often old stands in the file, if not once; the first is replaced
	test     string
}

// mutants are mistakes that people make in kernels, each of another kind. A mutant reads every buffer that the kernel has: one that
// does not is refused when its bindings are checked, and says nothing of the cases.
var mutants = []mutant{
	{
		what: "no eps under the root", file: "shaders/norm.comp",
		old: "row_sum(s) * inv_n + eps", new: "row_sum(s) * inv_n", test: "^TestConformance$/^(rms|layer)_norm$",
	},
	{
		what: "eps outside the root", file: "shaders/qk_norm_rope.glsl",
		old: "rsqrt_(row_sum(s) * inv_n + eps)", new: "1.0 / (1.0 / rsqrt_(row_sum(s) * inv_n) + eps)", test: "^TestConformance$/^qk_norm_rope",
	},
	{
		what: "transposes swapped", file: "backend/vulkan/lower_matmul.go",
		old: "flag(at.TransA), flag(at.TransB)", new: "flag(at.TransB), flag(at.TransA)", test: "^TestConformance$/^matmul$",
	},
	{
		what: "last column written past the edge", file: "shaders/matmul_subgroup.comp",
		old: "row < m && col < n", new: "row < m && col <= n", test: "^TestConformance$/^matmul$",
	},
	{
		what: "the inner dimension's tail dropped", file: "shaders/matmul_tile.comp",
		old: "l0 < k; l0 += BK", new: "l0 + BK <= k; l0 += BK", test: "^TestConformanceOfMatMulKernels$",
	},
	{
		what: "no barrier before the tile is overwritten", file: "shaders/matmul_tile.comp",
		old:  "fma(vec4(u[i / 4][i % 4]), v[j], acc[i][j]);\n      }\n      barrier();",
		new:  "fma(vec4(u[i / 4][i % 4]), v[j], acc[i][j]);\n      }",
		test: "^TestConformanceOfMatMulKernels$",
	},
	{
		what: "a query sees one key of the future", file: "shaders/attention.comp",
		old: "col + 16 * j <= row4 * 4 + i", new: "col + 16 * j <= row4 * 4 + i + 1", test: "^TestConformance$/^attention$",
	},
	{
		what: "the backward pass forgets the mask", file: "shaders/attention_grad_kv.comp",
		old: "bool diagonal = query == first;", new: "bool diagonal = false;", test: "^TestConformance$/^attention_grad$",
	},
	{
		what: "only one query head of the group counts", file: "shaders/attention_grad_kv.comp",
		old: "uint sharing = heads / kv_heads;", new: "uint sharing = 1;", test: "^TestConformance$/^attention_grad$",
	},
	{
		what: "no barrier between two passes", file: "backend/vulkan/lower_attention.go",
		old: "second.barrier = true", new: "second.barrier = false", test: "^TestConformance$/^attention_grad$|^TestTrainingStepsAreTheSameInEveryMode$",
	},
	{
		what: "z-loss without its gradient", file: "shaders/cross_entropy_grad.comp",
		old: "1.0 + 2.0 * zloss * lse", new: "1.0", test: "^TestConformance$/^cross_entropy",
	},
	{
		what: "an ignored target still has a gradient", file: "shaders/cross_entropy_grad.comp",
		old: "target < n ? d * p : 0.0", new: "d * p", test: "^TestConformance$/^cross_entropy",
	},
	{
		what: "the bias correction of the second moment dropped", file: "shaders/adamw.comp",
		old: "sqrt(vi / bias2)", new: "sqrt(vi)", test: "^TestConformance$/^adamw$",
	},
	{
		what: "the clip factor ignored", file: "shaders/adamw.comp",
		old: "clip * g[i]", new: "(clip > -1.0 ? 1.0 : 0.0) * g[i]", test: "^TestConformance$/^adamw$",
	},
	{
		what: "bf16 rounded towards zero", file: "shaders/cast.comp",
		old: "return round_even(f, 16u) & 0xffffu;", new: "return f >> 16;", test: "^TestConformance$/^cast$",
	},
	{
		what: "pairs of RoPE rotated backwards", file: "shaders/qk_norm_rope.comp",
		old: "u.x * cs.x - u.y * cs.y", new: "u.x * cs.x + u.y * cs.y", test: "^TestConformance$/^qk_norm_rope$",
	},
	{
		what: "the addend forgotten", file: "shaders/norm_grad.comp",
		old: "if (HAS_ADDEND) v += addend[at + i];", new: "if (HAS_ADDEND && addend[at + i] > 3e38) v += 1.0;", test: "^TestConformance$/^(rms|layer)_norm_grad$",
	},
	{
		what: "every second block of tokens skipped", file: "shaders/embedding_grad.comp",
		old: "block += 256", new: "block += 512", test: "^TestConformance$/^embedding_grad$",
	},
	{
		what: "a hazard without its barrier", file: "graph/plan.go",
		old:  "pl.barrier[i] = true",
		new:  "pl.barrier[i] = i%2 == 0",
		test: "^TestConformance$/^(hazards|step)$|^TestTrainingStepsAreTheSameInEveryMode$", // drivers on the CPU run in order: validation sees it
	},
}
