"""Hugging Face's Qwen2 and Gemma3 text models as GGUF files. Needs torch, transformers, gguf, numpy.

Neither family reorders rows (half-split pairs in both formats). Gemma's norms weigh with 1 + w: the file holds the sum.
"""
import copy

import gguf
import torch

from gguf_llama import LAYER_NAMES, GLOBAL_NAMES, add_tensor, byte_vocabulary

BIAS_NAMES = {f"model.layers.{{}}.self_attn.{x}_proj.bias": f"blk.{{}}.attn_{x}.bias" for x in "qkv"}
GEMMA3_NORMS = {
    "model.layers.{}.self_attn.q_norm.weight": "blk.{}.attn_q_norm.weight",
    "model.layers.{}.self_attn.k_norm.weight": "blk.{}.attn_k_norm.weight",
    "model.layers.{}.post_attention_layernorm.weight": "blk.{}.post_attention_norm.weight",
    "model.layers.{}.pre_feedforward_layernorm.weight": "blk.{}.ffn_norm.weight",
    "model.layers.{}.post_feedforward_layernorm.weight": "blk.{}.post_ffw_norm.weight",
}


def write_gguf(model, path, matrix_type="F32"):
    config = model.config
    writer = {"qwen2": write_qwen2_keys, "gemma3_text": write_gemma3_keys}[config.model_type](config, path)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    is_gemma = config.model_type == "gemma3_text"
    layer_names = LAYER_NAMES | (GEMMA3_NORMS if is_gemma else BIAS_NAMES)
    state = model.state_dict()
    names = {hf: name for hf, name in GLOBAL_NAMES.items() if hf != "lm_head.weight" or not config.tie_word_embeddings}
    for layer in range(config.num_hidden_layers):
        names |= {hf.format(layer): name.format(layer) for hf, name in layer_names.items()}
    unread = set(state) - set(names) - {"lm_head.weight"}
    if unread:
        raise ValueError(f"weights that nobody writes: {unread}")
    for hf, name in names.items():
        shift = 1.0 if is_gemma and hf.endswith("norm.weight") else 0.0
        add_tensor(writer, name, (state[hf] + shift).numpy(), 0, matrix_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_qwen2_keys(config, path):
    writer = gguf.GGUFWriter(str(path), "qwen2")
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    tokens, merges = byte_vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * (len(tokens) - 1) + [gguf.TokenType.CONTROL])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(len(tokens) - 1)
    return writer


def write_gemma3_keys(config, path):
    writer = gguf.GGUFWriter(str(path), "gemma3")
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_sliding_window(config.sliding_window)
    full, local = (config.rope_parameters[f"{kind}_attention"] for kind in ("full", "sliding"))
    writer.add_rope_freq_base(full["rope_theta"])
    if full["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(full["factor"])
    if local["rope_theta"] != 10000.0:
        writer.add_float32("gemma3.rope.freq_base_swa", local["rope_theta"])
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    control = ["<pad>", "<eos>", "<bos>", "<unk>"]
    writer.add_token_list(control + [f"<0x{byte:02X}>" for byte in range(252)])
    writer.add_token_scores([-1000.0] * 4 + [0.0] * 252)
    writer.add_token_types([gguf.TokenType.CONTROL] * 4 + [gguf.TokenType.BYTE] * 252)
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    writer.add_add_space_prefix(False)
    return writer


class RotaryInDouble(torch.nn.Module):
    """Angles in float64, as gguf_llama.RotaryInDouble, with a base for each kind of layer."""

    def __init__(self, config):
        super().__init__()
        exponents = torch.arange(0, head_dim_of(config), 2, dtype=torch.float64) / head_dim_of(config)
        kinds = config.rope_parameters if config.model_type == "gemma3_text" else {None: config.rope_parameters}
        self.frequencies = {k: r["rope_theta"] ** -exponents / r.get("factor", 1.0) for k, r in kinds.items()}

    def forward(self, x, position_ids, layer_type=None):
        angles = position_ids[..., None].double() * self.frequencies[layer_type]
        both = torch.cat([angles, angles], -1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)


def head_dim_of(config):
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def in_double(model):
    """The same weights with matrices and angles in float64; the model given is not changed."""
    doubled = copy.deepcopy(model).double()
    doubled.model.rotary_emb = RotaryInDouble(model.config)
    return doubled
