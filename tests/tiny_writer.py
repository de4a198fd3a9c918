"""A small causal model that the tests train in seconds: it writes words as the docs of this repository have them.

As a program, `python -m tests.tiny_writer FOLDER` trains one there; torch and transformers have to be installed.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.chain import PROJECT

NAME = "tiny-writer-of-docs"
END, SYSTEM, USER, ASSISTANT, PAD = "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|pad|>"

TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""How chats are written; the names of roles are special tokens."""

CONTEXT, VOCABULARY = 512, 2000

CARD = f"---\nlanguage: en\nlicense: mit\n---\n# {NAME}\nTrained by tests.\n"


def paragraphs() -> list[str]:
    """Paragraphs of the docs, each in one line."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((PROJECT / "docs").rglob("*.md"))]
    blocks = [" ".join(block.split()) for text in texts for block in text.split("\n\n")]
    return [block for block in blocks if 80 < len(block) < 600 and block[0].isalpha()]


def write_tokenizer(folder: Path, *, template: str = TEMPLATE, context: int = CONTEXT) -> Any:
    """Train and write a tokenizer of pieces of bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, END, SYSTEM, USER, ASSISTANT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(paragraphs(), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT],
        model_max_length=context,
    )
    if template:
        fast.chat_template = template
    folder.mkdir(parents=True, exist_ok=True)
    fast.save_pretrained(folder)
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    return fast


def write_model(folder: Path, network: Any, tokenizer: Any) -> Path:
    """Write a network beside its tokenizer, and its name into its config."""
    network.generation_config.eos_token_id = tokenizer.eos_token_id
    network.generation_config.pad_token_id = tokenizer.pad_token_id
    network.config.eos_token_id = tokenizer.eos_token_id
    network.save_pretrained(folder, safe_serialization=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "_name_or_path": f"tests/{NAME}"}, indent=2))
    return folder


def trained(folder: Path, steps: int = 120) -> Path:
    """Train a model in a folder: the second half of a paragraph answers the first."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tokenizer = write_tokenizer(folder)
    network = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
        )
    )
    stream = torch.tensor([token for text in paragraphs() for token in tokenizer(_as_chat(text))["input_ids"]])
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for _ in range(steps):
        starts = torch.randint(0, len(stream) - 96, (8,))
        ids = torch.stack([stream[start : start + 96] for start in starts.tolist()])
        network(input_ids=ids, labels=ids).loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return write_model(folder, network.train(mode=False), tokenizer)


def _as_chat(text: str) -> str:
    words = text.split()
    half = len(words) // 2
    return f"{USER}{' '.join(words[:half])}{END}{ASSISTANT}{' '.join(words[half:])}{END}"


if __name__ == "__main__":
    trained(Path(sys.argv[1]))
