#!/usr/bin/env python3
"""Writes tiny random Llama models as GGUF: make_tiny_llama.py FOLDER [NAME...]

2 layers, vocabulary 256, seed 0, each variant for one thing that goes wrong in engines. Weights are large
enough (standard deviation 0.15) that attention is far from uniform and logits spread over several units:
with the usual 0.02 all logits are nearly equal and a wrong mask or rotation would hide below 1e-4.
"""
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gguf_llama import write_gguf


@dataclass(frozen=True)
class Variant:
    name: str
    hidden: int = 64
    intermediate: int = 160
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    tied: bool = False
    theta: float = 10000.0
    linear_factor: float = 0.0  # 0: no scaling
    matrix_type: str = "F32"
    epsilon: float = 1e-5


VARIANTS = [
    Variant("plain"),
    Variant("tied", tied=True, theta=500000.0),
    Variant("no_groups", kv_heads=4, intermediate=128),
    Variant("one_kv_head", kv_heads=1, theta=100000.0, epsilon=1e-6),
    # Sizes that fill no panel of 16 rows, no line of 16 lanes, no group of 4 columns; heads wider than hidden / heads.
    Variant("odd_sizes", hidden=54, intermediate=101, heads=3, kv_heads=3, head_dim=18),
    Variant("wide_heads", hidden=32, intermediate=96, heads=2, kv_heads=1, head_dim=80, tied=True),
    Variant("narrow_heads", hidden=72, intermediate=72, heads=9, kv_heads=3, head_dim=6),
    Variant("linear_scaling", linear_factor=4.0),
    Variant("f16", matrix_type="F16", tied=True),
    Variant("q8_0", matrix_type="Q8_0"),
    Variant("q8_0_tied", matrix_type="Q8_0", tied=True, heads=2, kv_heads=1, head_dim=48),
    Variant("q4_1", matrix_type="Q4_1", intermediate=224),
]


def make(variant):
    """The model in float32, before any quantisation of its weights."""
    rope = {"rope_type": "default", "rope_theta": variant.theta}
    if variant.linear_factor:
        rope |= {"rope_type": "linear", "factor": variant.linear_factor}
    config = LlamaConfig(
        vocab_size=256, hidden_size=variant.hidden, intermediate_size=variant.intermediate, num_hidden_layers=2,
        num_attention_heads=variant.heads, num_key_value_heads=variant.kv_heads, head_dim=variant.head_dim,
        max_position_embeddings=4096, rms_norm_eps=variant.epsilon, tie_word_embeddings=variant.tied,
        rope_parameters=rope, attn_implementation="eager", dtype=torch.float32)
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.copy_(1.0 + 0.2 * torch.randn_like(parameter))
            else:
                parameter.copy_(0.15 * torch.randn_like(parameter))
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
