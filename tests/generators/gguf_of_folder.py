"""Writes a small Llama of a folder as GGUF, for a server of llama.cpp: `python gguf_of_folder.py FOLDER FILE`.

It runs in an environment with the packages gguf and safetensors. Names and the order of rotated dimensions are those of
llama.cpp's convert_hf_to_gguf.py.
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def rotated(weight: np.ndarray, heads: int) -> np.ndarray:
    """Bring pairs of dimensions that are rotated together side by side."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def name_of(name: str) -> str:
    """Return what GGUF calls a weight."""
    outer = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if name in outer:
        return outer[name]
    _, _, layer, *rest = name.split(".")
    return f"blk.{layer}.{NAMES['.'.join(rest[:-1])]}.weight"


def main(folder: Path, file: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
    out = gguf.GGUFWriter(file, "llama")
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_block_count(config["num_hidden_layers"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(heads)
    out.add_head_count_kv(key_heads)
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_rope_dimension_count(config["hidden_size"] // heads)
    out.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    out.add_vocab_size(config["vocab_size"])
    add_tokenizer(out, tokenizer, config, (folder / "chat_template.jinja").read_text())
    for name, weight in load_file(folder / "model.safetensors").items():
        if "q_proj" in name or "k_proj" in name:
            weight = rotated(weight, heads if "q_proj" in name else key_heads)  # noqa: PLW2901
        out.add_tensor(name_of(name), np.ascontiguousarray(weight, np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def add_tokenizer(out: gguf.GGUFWriter, tokenizer: dict, config: dict, template: str) -> None:
    vocabulary = {
        **tokenizer["model"]["vocab"],
        **{token["content"]: token["id"] for token in tokenizer["added_tokens"]},
    }
    special = {token["id"] for token in tokenizer["added_tokens"]}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types(
        [gguf.TokenType.CONTROL if each in special else gguf.TokenType.NORMAL for each in range(len(tokens))]
    )
    out.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in tokenizer["model"]["merges"]])
    out.add_eos_token_id(config["eos_token_id"])
    out.add_bos_token_id(config["eos_token_id"])
    out.add_add_bos_token(value=False)
    out.add_chat_template(template)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
