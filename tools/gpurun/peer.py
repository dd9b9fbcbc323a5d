"""Times PyTorch on the same device: matrix products (cuBLAS, rocBLAS or Metal's), and eager training steps of the same model.

python3 peer.py DEVICE SIZE REPEATS PRECISIONS MODEL BATCH SEQ prints one JSON object. DEVICE is auto, cuda, mps or cpu; MODEL is a config as vktrain writes it.
"""
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

FORMATS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def pick(name):
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    if getattr(torch.backends, "mps", None) and torch.backends.mps.is_available():
        return torch.device("mps")
    raise SystemExit("PyTorch sees no GPU here")


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize()
    elif device.type == "mps":
        torch.mps.synchronize()


def median_ms(f, device, repeats):
    for _ in range(2):
        f()
    times = []
    for _ in range(repeats):
        wait(device)
        start = time.perf_counter()
        f()
        wait(device)
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[len(times) // 2]


def product(device, size, dtype, repeats):
    """NT, as a layer's forward pass: x (N, N) and W (N, N)."""
    x = torch.randn(size, size, device=device).to(dtype)
    w = torch.randn(size, size, device=device).to(dtype)
    calls = 1 if device.type == "cpu" else max(1, int(2e11 / size**3))  # so that a measurement is long against the clock
    ms = median_ms(lambda: [x @ w.T for _ in range(calls)], device, repeats) / calls
    return {"ms": ms, "gflops": 2 * size**3 / ms / 1e6}


class Norm(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight, self.n, self.eps = nn.Parameter(torch.ones(n)), n, eps

    def forward(self, x):
        return F.rms_norm(x, (self.n,), self.weight.to(x.dtype), self.eps)  # one format: the fused kernel


class Block(nn.Module):
    """Peri-LN with QK-Norm, RoPE, grouped heads and SwiGLU."""

    def __init__(self, c):
        super().__init__()
        d, self.heads, self.kv, self.h = c["d_model"], c["n_heads"], c["n_kv_heads"], c["head_dim"]
        eps = c["norm_eps"]
        self.norms = nn.ModuleList([Norm(d, eps) for _ in range(4)])
        self.q_norm, self.k_norm = Norm(self.h, eps), Norm(self.h, eps)
        self.q = nn.Linear(d, self.heads * self.h, bias=False)
        self.k = nn.Linear(d, self.kv * self.h, bias=False)
        self.v = nn.Linear(d, self.kv * self.h, bias=False)
        self.o = nn.Linear(self.heads * self.h, d, bias=False)
        self.gate = nn.Linear(d, c["d_ff"], bias=False)
        self.up = nn.Linear(d, c["d_ff"], bias=False)
        self.down = nn.Linear(c["d_ff"], d, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        y = self.norms[0](x)
        q = self.q_norm(self.q(y).view(b, t, self.heads, self.h)).transpose(1, 2)
        k = self.k_norm(self.k(y).view(b, t, self.kv, self.h)).transpose(1, 2)
        v = self.v(y).view(b, t, self.kv, self.h).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if self.kv != self.heads:
            k, v = (z.repeat_interleave(self.heads // self.kv, 1) for z in (k, v))
        a = F.scaled_dot_product_attention(q, k, v.to(q.dtype), is_causal=True).transpose(1, 2).reshape(b, t, -1)
        x = x + self.norms[1](self.o(a))
        y = self.norms[2](x)
        return x + self.norms[3](self.down(F.silu(self.gate(y)) * self.up(y)))


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Decoder(nn.Module):
    def __init__(self, c, seq):
        super().__init__()
        self.embedding = nn.Embedding(c["vocab_size"], c["d_model"])
        nn.init.normal_(self.embedding.weight, std=c["d_model"] ** -0.5)
        self.blocks = nn.ModuleList([Block(c) for _ in range(c["n_layers"])])
        self.norm = Norm(c["d_model"], c["norm_eps"])
        self.head = nn.Linear(c["d_model"], c["vocab_size"], bias=False)
        if c["tied"]:
            self.head.weight = self.embedding.weight
        half = c["head_dim"] // 2
        angles = torch.outer(torch.arange(seq), c["rope_theta"] ** (-torch.arange(half) / half))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())


def step(device, c, batch, seq, precision, repeats):
    torch.manual_seed(1)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    model = Decoder(c, seq).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=device.type == "cuda")
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "f16")
    tokens = torch.randint(c["vocab_size"], (batch, seq), device=device)
    targets = torch.randint(c["vocab_size"], (batch, seq), device=device)

    def once():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, FORMATS[precision], enabled=precision != "f32"):
            loss = model(tokens, targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    ms = median_ms(once, device, repeats)
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    if device.type == "mps":
        peak = torch.mps.driver_allocated_memory()
    return {"ms": ms, "peak_bytes": peak, "params": sum(p.numel() for p in model.parameters())}


def main():
    name, size, repeats, precisions, config, batch, seq = sys.argv[1:]
    device, c = pick(name), json.loads(config)
    torch.backends.cuda.matmul.allow_tf32 = False  # float32 is float32 on both sides
    torch.backends.cudnn.allow_tf32 = False
    out = {"version": torch.__version__, "device": device.type, "matmul": {}, "step": {}}
    if device.type == "cuda":
        out["device"] = torch.cuda.get_device_name()
    for p in precisions.split(","):
        out["matmul"][p] = product(device, int(size), FORMATS[p], int(repeats))
    for p in precisions.split(","):
        try:
            out["step"][p] = step(device, c, int(batch), int(seq), p, int(repeats))
        except RuntimeError as e:  # out of memory is a result too
            out["step"][p] = {"error": str(e).splitlines()[0]}
    print(json.dumps(out))


main()
