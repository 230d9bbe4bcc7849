"""A tiny random llama with a vocabulary of bytes, as a GGUF v3 file, from nothing but the format's
definition (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)."""

import random
import struct

U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]  # ids 0, 1, 2
FIRST_BYTE = 3  # token 3 + i is the i-th byte of byte_spellings()


def byte_spellings():
    """GPT-2's table: every byte as a printable character, in the order of the bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    extra = iter(range(256, 512))
    return [chr(b) if b in shown else chr(next(extra)) for b in range(256)]


def byte_ids(text):
    """What a vocabulary of bytes without merges must give."""
    return [FIRST_BYTE + byte for byte in text.encode()]


class Model:
    """Metadata and tensors that a test may change before it writes them."""

    def __init__(self, layers=2, hidden=32, heads=2, kv_heads=1, ff=64, context=32768, template=CHATML):
        tokens = CONTROL + byte_spellings()
        self.n_vocab, self.layers, self.hidden, self.kv_dim = len(tokens), layers, hidden, hidden // heads * kv_heads
        self.metadata = {
            "general.architecture": (STRING, "llama"),
            "general.name": (STRING, "tiny"),
            "llama.block_count": (U32, layers),
            "llama.context_length": (U32, context),
            "llama.embedding_length": (U32, hidden),
            "llama.feed_forward_length": (U32, ff),
            "llama.attention.head_count": (U32, heads),
            "llama.attention.head_count_kv": (U32, kv_heads),
            "llama.attention.layer_norm_rms_epsilon": (F32, 1e-5),
            "tokenizer.ggml.model": (STRING, "gpt2"),
            "tokenizer.ggml.pre": (STRING, "smollm"),
            "tokenizer.ggml.tokens": (ARRAY, (STRING, tokens)),
            "tokenizer.ggml.token_type": (ARRAY, (I32, [3] * 3 + [1] * 256)),
            "tokenizer.ggml.merges": (ARRAY, (STRING, [])),
            "tokenizer.ggml.bos_token_id": (U32, 1),
            "tokenizer.ggml.eos_token_id": (U32, 2),
            "tokenizer.ggml.add_bos_token": (BOOL, False),
        }
        if template:
            self.metadata["tokenizer.chat_template"] = (STRING, template)
        self.tensors = {}
        self._make(random.Random(1), ff)

    def _make(self, rng, ff):
        def add(name, rows, columns, scale, offset=0.0):
            values = [offset + scale * (rng.random() - 0.5) for _ in range(rows * columns)]
            self.tensors[name] = ([columns] if rows == 1 else [columns, rows], values)

        h = self.hidden
        add("token_embd.weight", self.n_vocab, h, 2.0)
        for i in range(self.layers):
            for name, rows, columns, scale, offset in (
                ("attn_norm", 1, h, 0.5, 1.0), ("attn_q", h, h, 0.8, 0.0), ("attn_k", self.kv_dim, h, 0.8, 0.0),
                ("attn_v", self.kv_dim, h, 0.8, 0.0), ("attn_output", h, h, 0.8, 0.0), ("ffn_norm", 1, h, 0.5, 1.0),
                ("ffn_gate", ff, h, 0.8, 0.0), ("ffn_up", ff, h, 0.8, 0.0), ("ffn_down", h, ff, 0.8, 0.0)):
                add(f"blk.{i}.{name}.weight", rows, columns, scale, offset)
        add("output_norm.weight", 1, h, 0.5, 1.0)
        add("output.weight", self.n_vocab, h, 0.5)
        # Control tokens have the logit 0: of 256 others some is higher, so that greedy answers never end.
        self.tensors["output.weight"][1][: 3 * h] = [0.0] * (3 * h)

    def bytes(self):
        header = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.metadata))
        header += b"".join(_string(key) + struct.pack("<I", kind) + _value(kind, value)
                           for key, (kind, value) in self.metadata.items())
        data = b""
        for name, (shape, values) in self.tensors.items():
            header += _string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
            data += struct.pack(f"<{len(values)}f", *values)
            data += bytes(-len(data) % 32)
        return header + bytes(-len(header) % 32) + data

    def write(self, path):
        path.write_bytes(self.bytes())
        return str(path)


def _string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind, value):
    if kind == STRING:
        return _string(value)
    if kind == ARRAY:
        element, items = value
        return struct.pack("<IQ", element, len(items)) + b"".join(_value(element, item) for item in items)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)
