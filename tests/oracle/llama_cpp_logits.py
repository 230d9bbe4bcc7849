"""Logits of llama.cpp, through its C interface and the ctypes declarations of its Python package.

Measured, never linked: only agreement.py --llama-cpp uses it. It needs the unpacked source package
llama-cpp-python (for the declarations that fit its vendor/llama.cpp) and a build of it with libllama.so, as
benchmarks/peers makes them.
"""
import importlib
import os
import sys
import types
from pathlib import Path

import numpy

BATCH_TOKENS = 512


def declarations(source, build):
    """The module llama_cpp.llama_cpp without its package's __init__, which would want more packages."""
    os.environ["LLAMA_CPP_LIB_PATH"] = str(Path(build).resolve() / "bin")
    package = types.ModuleType("llama_cpp")
    package.__path__ = [str(Path(source).resolve() / "llama_cpp")]
    sys.modules["llama_cpp"] = package
    return importlib.import_module("llama_cpp.llama_cpp")


class LlamaCpp:
    """One model, one sequence at a time, KV in f16 as is its default."""

    def __init__(self, source, build, model, window_tokens, threads):
        self.api = declarations(source, build)
        self.silence = self.api.llama_log_callback(lambda *_: None)  # kept: C holds the address
        self.api.llama_log_set(self.silence, None)
        self.api.llama_backend_init()
        self.model = self.api.llama_model_load_from_file(str(model).encode(), self.api.llama_model_default_params())
        parameters = self.api.llama_context_default_params()
        parameters.n_ctx = window_tokens
        parameters.n_batch = parameters.n_ubatch = BATCH_TOKENS
        parameters.n_threads = parameters.n_threads_batch = threads
        self.context = self.api.llama_init_from_model(self.model, parameters)
        if not self.model or not self.context:
            raise ValueError(f"llama.cpp cannot load {model}")
        self.n_vocab = self.api.llama_vocab_n_tokens(self.api.llama_model_get_vocab(self.model))

    def logits(self, ids):
        """float32 [n, n_vocab] from an empty cache."""
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        parts = []
        batch = self.api.llama_batch_init(BATCH_TOKENS, 0, 1)
        for begin in range(0, len(ids), BATCH_TOKENS):
            part = ids[begin:begin + BATCH_TOKENS]
            batch.n_tokens = len(part)
            for i, token in enumerate(part):
                batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, begin + i, 1, 1
                batch.seq_id[i][0] = 0
            if self.api.llama_decode(self.context, batch) != 0:
                raise ValueError("llama_decode failed")
            rows = numpy.ctypeslib.as_array(self.api.llama_get_logits(self.context), shape=(len(part), self.n_vocab))
            parts.append(rows.copy())
        self.api.llama_batch_free(batch)
        return numpy.concatenate(parts)
