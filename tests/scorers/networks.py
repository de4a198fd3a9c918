"""Small networks with real tokenizers, which tests and benchmarks write to a folder: the score is one word's share."""

import json
from pathlib import Path
from typing import Any

import numpy as np

WORDS = ("good", "bad", "river", "stone", "light", "water", "road", "tree", "house", "wind")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer of ten words; every other word is unknown."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {token: rank for rank, token in enumerate((*SPECIAL, *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def write_config(folder: Path, labels: tuple[str, ...] = ("LABEL_0",), **more: object) -> None:
    """Write `config.json` with these labels."""
    config = {"id2label": {str(rank): label for rank, label in enumerate(labels)}, "pad_token_id": 0, **more}
    (folder / "config.json").write_text(json.dumps(config))


def onnx_folder(folder: Path, *, dynamic: bool = False, breaks_on: str = "", lacks: str = "") -> str:
    """Write a network that says how many tokens of ten are `good`, and less if they are `bad`; -5 to 5.

    One that `breaks_on` a word fails on a window that has it twice, one that `lacks` a word has no row for it.
    """
    from onnx import TensorProto, checker, helper, numpy_helper, save

    folder.mkdir(parents=True, exist_ok=True)
    rows = len(SPECIAL) + (WORDS.index(lacks) if lacks else len(WORDS))
    table = np.zeros((rows, 2), np.float32)
    table[len(SPECIAL) :, 1] = 1.0
    table[len(SPECIAL) : len(SPECIAL) + 2, 0] = (10.0, -10.0)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),
        helper.make_node("ReduceSum", ["vectors", "axis"], ["sums"], keepdims=0),
        helper.make_node("Split", ["sums"], ["value", "count"], axis=1, num_outputs=2),
        helper.make_node("Max", ["count", "one"], ["some"]),
        helper.make_node("Div", ["value", "some"], ["share"]),
        *failing("share", "logits"),
    ]
    if dynamic:
        nodes.append(helper.make_node("DynamicQuantizeLinear", ["logits"], ["small", "scale", "zero"]))
    graph = helper.make_graph(
        nodes,
        "share",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["rows", "length"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["rows", 1])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([1], np.int64), "axis"),
            numpy_helper.from_array(np.array([1.0], np.float32), "one"),
            *failing_tables(breaks_on),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    checker.check_model(model)
    save(model, str(folder / "model.onnx"))
    write_tokenizer(folder)
    write_config(folder)
    return str(folder)


def failing(given: str, out: str) -> list[Any]:
    """Return nodes that hand a tensor on, and fail where a window has the word of `failing_tables` twice."""
    from onnx import helper

    return [
        helper.make_node("Equal", ["input_ids", "number_of_word"], ["is_word"]),
        helper.make_node("Cast", ["is_word"], ["as_number"], to=7),
        helper.make_node("ReduceSum", ["as_number"], ["times"], keepdims=0),
        helper.make_node("Gather", ["two_zeros", "times"], ["no_more"]),
        helper.make_node("Add", [given, "no_more"], [out]),
    ]


def failing_tables(word: str) -> list[Any]:
    """Return the constants of `failing`; without a word none is counted."""
    from onnx import numpy_helper

    number = len(SPECIAL) + WORDS.index(word) if word else -1
    return [
        numpy_helper.from_array(np.array([number], np.int64), "number_of_word"),
        numpy_helper.from_array(np.zeros(2, np.float32), "two_zeros"),
    ]


def embedding_folder(folder: Path, *, breaks_on: str = "", lacks: str = "") -> str:
    """Write an encoder whose vector of a token is drawn, one row per token of a window; see `onnx_folder`."""
    from onnx import TensorProto, checker, helper, numpy_helper, save

    folder.mkdir(parents=True, exist_ok=True)
    rows = len(SPECIAL) + (WORDS.index(lacks) if lacks else len(WORDS))
    table = np.random.default_rng(5).normal(size=(len(SPECIAL) + len(WORDS), 8)).astype(np.float32)[:rows]
    table[: len(SPECIAL)] = 0.0
    table[SPECIAL.index("[CLS]"), 0] = 0.1
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),
            *failing("vectors", "last_hidden_state"),
        ],
        "tokens",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["rows", "length"])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["rows", "length", 8])],
        [numpy_helper.from_array(table, "table"), *failing_tables(breaks_on)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    checker.check_model(model)
    save(model, str(folder / "model.onnx"))
    write_tokenizer(folder)
    write_config(folder)
    return str(folder)


def static_folder(folder: Path) -> str:
    """Write static embeddings of the ten words whose head tells `good` from `bad`."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    vectors = np.random.default_rng(5).normal(size=(len(SPECIAL) + len(WORDS), 8)).astype(np.float32)
    good, bad = (vectors[len(SPECIAL) + rank] / np.linalg.norm(vectors[len(SPECIAL) + rank]) for rank in (0, 1))
    save_file({"embeddings": vectors}, folder / "model.safetensors")
    save_file({"weight": np.stack([bad, good]) * 4, "bias": np.zeros(2, np.float32)}, folder / "head.safetensors")
    write_tokenizer(folder)
    write_config(folder, ("bad", "good"))
    return str(folder)


def bert_folder(folder: Path, labels: tuple[str, ...], layers: int = 2, hidden: int = 32, most: int = 256) -> str:
    """Write a BERT with weights that were drawn and not trained; needs torch and transformers."""
    import torch
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=max(hidden // 64, 2),
        intermediate_size=4 * hidden,
        max_position_embeddings=most,
        id2label=dict(enumerate(labels)),
        label2id={label: rank for rank, label in enumerate(labels)},
        initializer_range=0.2,
        pad_token_id=0,
    )
    transformers.BertForSequenceClassification(config).eval().save_pretrained(folder)
    write_tokenizer(folder)
    return str(folder)


def gpt_folder(folder: Path) -> str:
    """Write a causal language model with weights that were drawn and not trained; needs torch and transformers."""
    import torch
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    size = len(SPECIAL) + len(WORDS)
    config = transformers.GPT2Config(
        vocab_size=size, n_positions=64, n_embd=32, n_layer=2, n_head=2, initializer_range=0.5, pad_token_id=0
    )
    transformers.GPT2LMHeadModel(config).eval().save_pretrained(folder)
    write_tokenizer(folder)
    return str(folder)
