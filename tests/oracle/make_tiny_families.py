#!/usr/bin/env python3
"""Writes tiny random Qwen2 and Gemma3 models as GGUF: make_tiny_families.py FOLDER [NAME...]

Vocabulary 256, seed 0, weights of standard deviation 0.15 as in make_tiny_llama.py. Gemma's windows of 8 positions are
shorter than every prompt but the shortest; six layers hold one that sees everything.
"""
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, Qwen2Config, Qwen2ForCausalLM

from gguf_families import write_gguf


@dataclass(frozen=True)
class Variant:
    name: str
    family: str
    layers: int
    hidden: int = 64
    intermediate: int = 160
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16      # qwen2: hidden / heads
    tied: bool = True
    theta: float = 1e6
    local_theta: float = 10000.0
    linear_factor: float = 0.0  # of full layers; 0: none
    window: int = 8
    scalar: int = 0         # query_pre_attn_scalar; 0: head_dim
    matrix_type: str = "F32"


VARIANTS = [
    Variant("qwen2", "qwen2", layers=2, tied=False),
    Variant("qwen2_tied_odd", "qwen2", layers=2, hidden=54, intermediate=101, heads=3, kv_heads=1, head_dim=18, theta=1e4),
    Variant("gemma3", "gemma3", layers=6),
    Variant("gemma3_odd", "gemma3", layers=7, hidden=48, intermediate=101, heads=3, kv_heads=1, head_dim=22, window=5),
    Variant("gemma3_block", "gemma3", layers=6, kv_heads=4, window=32, local_theta=5000.0, linear_factor=8.0),
    Variant("gemma3_one", "gemma3", layers=6, window=1),
    Variant("gemma3_windows_only", "gemma3", layers=5),
    # The 27B has 62 layers and another scale than its head size says.
    Variant("gemma3_62", "gemma3", layers=62, hidden=32, intermediate=40, heads=2, kv_heads=1, head_dim=10, scalar=16),
]


def config_of(v):
    shared = dict(vocab_size=256, hidden_size=v.hidden, intermediate_size=v.intermediate, num_hidden_layers=v.layers,
                  num_attention_heads=v.heads, num_key_value_heads=v.kv_heads, max_position_embeddings=4096,
                  tie_word_embeddings=v.tied, rms_norm_eps=1e-6, attn_implementation="eager", dtype=torch.float32)
    full = {"rope_type": "default", "rope_theta": v.theta}
    if v.linear_factor:
        full |= {"rope_type": "linear", "factor": v.linear_factor}
    if v.family == "qwen2":
        return Qwen2Config(rope_parameters=full, **shared)
    local = {"rope_type": "default", "rope_theta": v.local_theta}
    return Gemma3TextConfig(head_dim=v.head_dim, query_pre_attn_scalar=v.scalar or v.head_dim, sliding_window=v.window,
                            rope_parameters={"full_attention": full, "sliding_attention": local}, **shared)


def make(variant):
    model = (Qwen2ForCausalLM if variant.family == "qwen2" else Gemma3ForCausalLM)(config_of(variant)).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            random = torch.randn(parameter.shape, generator=generator)
            if name.endswith("norm.weight"):
                parameter.copy_((0.0 if variant.family == "gemma3" else 1.0) + 0.2 * random)
            else:
                parameter.copy_((0.5 if name.endswith("bias") else 0.15) * random)
    return model


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for variant in VARIANTS:
        if len(sys.argv) == 2 or variant.name in sys.argv[2:]:
            path = folder / f"{variant.name}.gguf"
            write_gguf(make(variant), path, variant.matrix_type)
            print(f"{path}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
