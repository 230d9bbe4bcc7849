#!/usr/bin/env python3
"""How near `kvasir logits` is to the same file's weights in float32 (dequantised).

The reference is gguf_llama.py for the default model; --transformers takes Hugging Face's class of the file's
architecture instead, which knows all families and needs as much memory as the weights in float32.

Over real text, in windows that start from an empty cache: mean and 99.9% quantile of KL(reference || program)
in nats, share of positions with the same best token, perplexity. With --llama-cpp the same tokens go through
llama.cpp and the bars are relative to what it reaches now; without, to what it reached on the default text
(LLAMA_CPP_FIGURES, written down by a run with --llama-cpp).
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy

import gguf_llama
from checks import Kvasir, guarded
from tokenizer_oracle import load_hugging_face

DEFAULT_TEXT = "/usr/share/common-licenses/GPL-3"
DEFAULT_TOKENS = 4096
DEFAULT_WINDOW = 1024
# llama-cpp-python 0.3.36, f16 KV, defaults above: mean KL, 99.9% KL, share of equal best tokens.
LLAMA_CPP_FIGURES = (0.003283, 0.04707, 0.96460)
MEAN_KL_FACTOR, TAIL_KL_FACTOR, TOP_1_SLACK = 1.05, 1.2, 0.003
ROWS = 128  # of logits in float64 at a time: 128 * 49,152 * 8 bytes = 50 MB


class Agreement:
    """Sums over windows."""

    def __init__(self, name):
        self.name = name
        self.kl, self.same, self.loss = [], [], []

    def add(self, ids, reference, logits):
        if logits.shape != reference.shape:
            raise ValueError(f"{self.name}: logits are {logits.shape}, expected {reference.shape}")
        for begin in range(0, len(ids), ROWS):
            p = log_softmax(reference[begin:begin + ROWS])
            q = log_softmax(logits[begin:begin + ROWS])
            self.kl.append((numpy.exp(p) * (p - q)).sum(-1))
            self.same.append(p.argmax(-1) == q.argmax(-1))
            following = numpy.array(ids[begin + 1:begin + 1 + ROWS])
            self.loss.append(-q[numpy.arange(len(following)), following])

    def figures(self):
        kl = numpy.concatenate(self.kl)
        return float(kl.mean()), float(numpy.quantile(kl, 0.999)), float(numpy.concatenate(self.same).mean())

    def report(self):
        mean, tail, top_1 = self.figures()
        perplexity = float(numpy.exp(numpy.concatenate(self.loss).mean()))
        print(f"figure: {self.name}: mean KL {mean:.6f}, 99.9% KL {tail:.5f}, same best token {100 * top_1:.2f}%, "
              f"perplexity {perplexity:.4f}, {sum(map(len, self.kl))} tokens")


def log_softmax(rows):
    rows = rows.astype(numpy.float64)
    rows -= rows.max(-1, keepdims=True)
    return rows - numpy.log(numpy.exp(rows).sum(-1, keepdims=True))


class Transformers:
    """Hugging Face's model of a GGUF file, float32, eager attention."""

    def __init__(self, path):
        import torch
        from transformers import AutoModelForCausalLM
        folder, name = os.path.split(os.path.abspath(path))
        self.torch = torch
        self.model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32,
                                                          attn_implementation="eager").eval()

    def logits(self, ids):
        with self.torch.no_grad():
            return self.model(self.torch.tensor([ids])).logits[0].numpy()


def windows_of(arguments):
    if arguments.transformers:
        tokens = subprocess.run([arguments.kvasir, "tokenize", arguments.model, "--file", arguments.text, "--json",
                                 "--no-special"], check=True, capture_output=True).stdout
        ids = json.loads(tokens)[:arguments.tokens]
    else:
        text = Path(arguments.text).read_text(encoding="utf-8")
        tokenizer = load_hugging_face(arguments.model)
        ids = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)[:arguments.tokens]
    if len(ids) < 500:
        raise ValueError(f"{arguments.text} has {len(ids)} tokens; at least 500 are needed to mean anything")
    return [ids[i:i + arguments.window] for i in range(0, len(ids), arguments.window)]


def main(checks, arguments):
    if arguments.transformers:
        reference_logits = Transformers(arguments.model).logits
    else:
        model = gguf_llama.read_gguf(arguments.model)
        reference_logits = lambda ids: gguf_llama.logits_of(model, ids)  # noqa: E731
    programs = {}
    if arguments.kvasir:
        kvasir = Kvasir(arguments.kvasir)
        options = ("--kv-type", arguments.kv_type) if arguments.kv_type else ()
        programs["kvasir"] = lambda ids: kvasir.logits(arguments.model, [ids], *options)[0]
    if arguments.llama_cpp:
        from llama_cpp_logits import LlamaCpp
        peer = LlamaCpp(arguments.llama_cpp_source, arguments.llama_cpp, arguments.model, arguments.window,
                        os.cpu_count() or 1)
        programs["llama.cpp"] = peer.logits
    agreements = {name: Agreement(name) for name in programs}
    float32 = Agreement("float32 reference")
    for ids in windows_of(arguments):
        reference = reference_logits(ids)
        float32.add(ids, reference, reference)
        for name, logits in programs.items():
            agreements[name].add(ids, reference, logits(ids))
    float32.report()
    for agreement in agreements.values():
        agreement.report()
    defaults = not arguments.transformers and (arguments.text, arguments.tokens, arguments.window) == (DEFAULT_TEXT, DEFAULT_TOKENS, DEFAULT_WINDOW)
    if "llama.cpp" in agreements:
        peer_figures, where = agreements["llama.cpp"].figures(), "llama.cpp's"
        if defaults:
            print(f"LLAMA_CPP_FIGURES = ({peer_figures[0]:.6f}, {peer_figures[1]:.5f}, {peer_figures[2]:.5f})")
    elif defaults:
        peer_figures, where = LLAMA_CPP_FIGURES, "llama.cpp's, measured before"
    else:
        raise ValueError("another text, count or window needs --llama-cpp: the stored figures are for the defaults")
    if "kvasir" in agreements:
        mean, tail, top_1 = agreements["kvasir"].figures()
        checks.at_most(mean, MEAN_KL_FACTOR * peer_figures[0], f"mean KL ({where} {peer_figures[0]:.6f})")
        checks.at_most(tail, TAIL_KL_FACTOR * peer_figures[1], f"99.9% KL ({where} {peer_figures[1]:.5f})")
        checks.at_least(top_1, peer_figures[2] - TOP_1_SLACK, f"same best token ({where} {peer_figures[2]:.5f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvasir", help="the program")
    parser.add_argument("--model", required=True, help="smollm2-135m-instruct.gguf, or any with --transformers")
    parser.add_argument("--text", default=DEFAULT_TEXT, help="a text file (default: the GPL of Debian's base-files)")
    parser.add_argument("--tokens", type=int, default=DEFAULT_TOKENS, help="how many of its tokens")
    parser.add_argument("--window", type=int, default=DEFAULT_WINDOW, help="tokens of each sequence")
    parser.add_argument("--kv-type", help="kvasir's --kv-type (default: its own)")
    parser.add_argument("--transformers", action="store_true", help="the reference is transformers' (needs --kvasir)")
    parser.add_argument("--llama-cpp", metavar="BUILD", help="build folder of llama.cpp, with bin/libllama.so")
    parser.add_argument("--llama-cpp-source", metavar="FOLDER", help="the unpacked llama-cpp-python source package")
    parsed = parser.parse_args()
    if not (parsed.kvasir or parsed.llama_cpp):
        parser.error("nothing to compare: give --kvasir, --llama-cpp or both")
    if bool(parsed.llama_cpp) != bool(parsed.llama_cpp_source):
        parser.error("--llama-cpp and --llama-cpp-source go together")
    status = guarded(lambda checks: main(checks, parsed))
    sys.exit(status if parsed.kvasir else 0)  # without kvasir there are figures, but nothing to check
