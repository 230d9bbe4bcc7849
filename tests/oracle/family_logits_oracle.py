#!/usr/bin/env python3
"""`kvasir logits` against Hugging Face on tiny random Qwen2 and Gemma3 models (make_tiny_families.py).

The reference is the family's own class, eager attention, one full forward pass without a cache, float32 (float64 for
the long prompt and the deep model, whose own float32 rounding is past the tolerance). F32 weights, f32 KV:
|difference| <= 1e-4 at every position and for every token id. Chunks and threads must not change a bit, however a chunk
lies to the windows; so too a session whose window has moved on (tests/models has that one).
"""
import argparse
import sys
import tempfile
from pathlib import Path

from checks import Kvasir, guarded
from gguf_families import in_double, write_gguf
from gguf_llama import logits_of
from llama_logits_oracle import LONG, TOLERANCE, largest, random_lists
from make_tiny_families import VARIANTS, make

LENGTHS = (1, 7, 8, 9, 19, 40, 100)  # around the window of 8, and more than two blocks of 32
CHUNKS = (1, 3, 8, 512)


def check(checks, kvasir, path, variant, lists, double):
    model = make(variant)
    write_gguf(model, path, variant.matrix_type)
    if double:
        model = in_double(model)
    answers = kvasir.logits(path, lists, "--kv-type", "f32")
    worst = 0.0
    for ids, answer in zip(lists, answers):
        difference = largest(answer, logits_of(model, ids))
        worst = max(worst, difference)
        checks.at_most(difference, TOLERANCE, f"{variant.name}: {len(ids)} tokens: largest difference")
    print(f"figure: {variant.name}: largest difference from transformers {worst:.2g}")
    for options in [("--prefill-chunk", c) for c in CHUNKS] + [("--threads", n) for n in (1, 3)]:
        again = kvasir.logits(path, lists, "--kv-type", "f32", *options)
        same = all(a.tobytes() == b.tobytes() for a, b in zip(again, answers))
        checks.that(same, f"{variant.name}: {len(lists)} lists: same bits with {' '.join(map(str, options))}")
    alone = [kvasir.logits(path, [ids], "--kv-type", "f32")[0] for ids in lists]
    checks.that(all(a.tobytes() == b.tobytes() for a, b in zip(alone, answers)), f"{variant.name}: same bits one by one")


def main(checks, arguments):
    kvasir = Kvasir(arguments.kvasir)
    with tempfile.TemporaryDirectory() as folder:
        for variant in VARIANTS:
            path = Path(folder) / f"{variant.name}.gguf"
            check(checks, kvasir, path, variant, random_lists(LENGTHS, seed=1), double=variant.layers > 8)
            if variant.name in ("qwen2", "gemma3"):
                check(checks, kvasir, path, variant, random_lists([LONG, 3], seed=2), double=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvasir", required=True, help="the program")
    parsed = parser.parse_args()
    sys.exit(guarded(lambda checks: main(checks, parsed)))
