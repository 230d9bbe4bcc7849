"""Llama models between Hugging Face's classes and GGUF files, both ways. Needs torch, transformers, gguf, numpy.

GGUF keeps the query and key rows of the llama architecture in another order: the two halves of each head's
rows, which Hugging Face rotates as pairs (i, i + head_dim / 2), are interleaved to pairs (2i, 2i + 1).
"""
import copy

import gguf
import numpy
import torch
from gguf.quants import dequantize, quantize
from transformers import LlamaConfig, LlamaForCausalLM

# Hugging Face name -> GGUF name; {} is the layer.
GLOBAL_NAMES = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
                "lm_head.weight": "output.weight"}
LAYER_NAMES = {
    "model.layers.{}.input_layernorm.weight": "blk.{}.attn_norm.weight",
    "model.layers.{}.self_attn.q_proj.weight": "blk.{}.attn_q.weight",
    "model.layers.{}.self_attn.k_proj.weight": "blk.{}.attn_k.weight",
    "model.layers.{}.self_attn.v_proj.weight": "blk.{}.attn_v.weight",
    "model.layers.{}.self_attn.o_proj.weight": "blk.{}.attn_output.weight",
    "model.layers.{}.post_attention_layernorm.weight": "blk.{}.ffn_norm.weight",
    "model.layers.{}.mlp.gate_proj.weight": "blk.{}.ffn_gate.weight",
    "model.layers.{}.mlp.up_proj.weight": "blk.{}.ffn_up.weight",
    "model.layers.{}.mlp.down_proj.weight": "blk.{}.ffn_down.weight",
}


def names_of(n_layers, tied):
    names = {hf: g for hf, g in GLOBAL_NAMES.items() if not (tied and hf == "lm_head.weight")}
    for layer in range(n_layers):
        names |= {hf.format(layer): g.format(layer) for hf, g in LAYER_NAMES.items()}
    return names


def heads_of(name, config):
    """How many heads a tensor's rows belong to; 0: its rows keep their order."""
    if name.endswith("q_proj.weight"):
        return config.num_attention_heads
    return config.num_key_value_heads if name.endswith("k_proj.weight") else 0


def interleave_halves(weight, n_heads):
    """[n_heads * head_dim, n]: per head, rows 0..d/2-1 and d/2..d-1 become 0, d/2, 1, d/2+1, ..."""
    rows, columns = weight.shape
    return weight.reshape(n_heads, 2, rows // n_heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def separate_halves(weight, n_heads):
    """The inverse of interleave_halves."""
    rows, columns = weight.shape
    return weight.reshape(n_heads, rows // n_heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


# --- writing ----------------------------------------------------------------------------------

def byte_vocabulary():
    """256 tokens: GPT-2's characters of the bytes 0 to 253, one merge, one control token at the end.

    The bytes 254 and 255 have none; they occur in no UTF-8 text.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    character = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
    return [character[b] for b in range(254)] + ["th", "<|end|>"], ["t h"]


def write_gguf(model, path, matrix_type="F32"):
    """A LlamaForCausalLM as GGUF, its matrices as matrix_type (F32, F16, Q8_0, Q4_1), its norms as F32."""
    config = model.config
    head_dim = model.model.layers[0].self_attn.head_dim
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(head_dim)
    if head_dim * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] != "default":
        raise ValueError(f"rope type {rope['rope_type']}")
    tokens, merges = byte_vocabulary()
    kinds = [gguf.TokenType.NORMAL] * (len(tokens) - 1) + [gguf.TokenType.CONTROL]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(len(tokens) - 1)
    state = model.state_dict()
    for hf, name in names_of(config.num_hidden_layers, config.tie_word_embeddings).items():
        add_tensor(writer, name, state[hf].numpy(), heads_of(hf, config), matrix_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tensor(writer, name, weight, n_heads, matrix_type):
    if n_heads:
        weight = interleave_halves(weight, n_heads)
    weight = numpy.ascontiguousarray(weight)
    if weight.ndim == 1 or matrix_type == "F32":
        writer.add_tensor(name, weight)
    elif matrix_type == "F16":
        writer.add_tensor(name, weight.astype(numpy.float16))
    else:
        kind = gguf.GGMLQuantizationType[matrix_type]
        writer.add_tensor(name, quantize(weight, kind), raw_dtype=kind)


# --- reading ----------------------------------------------------------------------------------

def read_gguf(path):
    """The model of a GGUF file of the llama architecture with every tensor dequantised to float32."""
    reader = gguf.GGUFReader(str(path))

    def value(key, default=None):
        field = reader.fields.get(key)
        return default if field is None else field.contents()
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    n_heads = value("llama.attention.head_count")
    hidden = value("llama.embedding_length")
    rope = {"rope_type": "default", "rope_theta": value("llama.rope.freq_base", 10000.0)}
    if value("llama.rope.scaling.type", "none") == "linear":
        rope |= {"rope_type": "linear", "factor": value("llama.rope.scaling.factor")}
    config = LlamaConfig(
        vocab_size=int(tensors["token_embd.weight"].shape[1]), hidden_size=hidden,
        intermediate_size=value("llama.feed_forward_length"), num_hidden_layers=value("llama.block_count"),
        num_attention_heads=n_heads, num_key_value_heads=value("llama.attention.head_count_kv", n_heads),
        head_dim=value("llama.attention.key_length", hidden // n_heads), rope_parameters=rope,
        max_position_embeddings=value("llama.context_length"),
        rms_norm_eps=value("llama.attention.layer_norm_rms_epsilon"),
        tie_word_embeddings="output.weight" not in tensors, attn_implementation="eager", dtype=torch.float32)
    state = {}
    for hf, name in names_of(config.num_hidden_layers, config.tie_word_embeddings).items():
        tensor = tensors.pop(name)
        weight = dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
        if heads := heads_of(hf, config):
            weight = separate_halves(weight, heads)
        state[hf] = torch.from_numpy(numpy.array(weight))
    if tensors:
        raise ValueError(f"tensors that nobody reads: {', '.join(sorted(tensors))}")
    model = LlamaForCausalLM(config).eval()
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"} or (missing and not config.tie_word_embeddings):
        raise ValueError(f"missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return model


def logits_of(model, ids):
    """[n, n_vocab] in the model's type: one full forward pass without a cache."""
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


class RotaryInDouble(torch.nn.Module):
    """Angles in float64. Hugging Face multiplies position and frequency in float32 even in a float64 model: past a
    thousand positions that alone moves the logits of a tiny model by 1.6e-4."""

    def __init__(self, config):
        super().__init__()
        rope = config.rope_parameters
        exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
        self.frequencies = rope["rope_theta"] ** -exponents / rope.get("factor", 1.0)

    def forward(self, x, position_ids):
        """cos and sin, [1, n, head_dim]: the halves of a head rotate as pairs."""
        angles = position_ids[..., None].double() * self.frequencies
        both = torch.cat([angles, angles], -1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)


def in_double(model):
    """The same weights with all arithmetic in float64; the model given is not changed."""
    doubled = copy.deepcopy(model).double()
    doubled.model.rotary_emb = RotaryInDouble(model.config)
    return doubled


# --- the activations as kvasir quantises them ---------------------------------------------------

def quantize_activations(x):
    """Per 32 values: scale absmax / 127, codes rounded to nearest, ties to even; returned dequantised."""
    groups = x.reshape(*x.shape[:-1], -1, 32)
    absmax = groups.abs().amax(-1, keepdim=True)
    codes = torch.round(groups * torch.where(absmax > 0, 127.0 / absmax, torch.zeros_like(absmax)))
    return (codes.clamp(-127, 127) * (absmax / 127.0)).reshape(x.shape)


def quantizing_inputs(model):
    """Hooks that quantise the input of every Linear; a context manager."""
    return _Hooks([m for m in model.modules() if isinstance(m, torch.nn.Linear)])


class _Hooks:
    def __init__(self, modules):
        self.modules = modules

    def __enter__(self):
        def hook(_, inputs):
            return (quantize_activations(inputs[0]), *inputs[1:])
        self.handles = [m.register_forward_pre_hook(hook) for m in self.modules]

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()
