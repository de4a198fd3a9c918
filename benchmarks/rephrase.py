"""Measures a stage that writes: the same bytes for any batch, speed beside the bare model, and what a takedown leaves.

    PYTHONPATH=. python benchmarks/rephrase.py [--only bytes|speed|stage|takedown ...] [--texts 64] [--json]

The model is the tiny one that the tests train (`tests/tiny_writer.py`); `bytes`, `speed` and `stage` need torch and
transformers. Measures alternate, and the medians count. The last line with --json is one object:

- `bytes`: texts that are the same, of all, for each number of requests that are handed over at once and in reverse.
- `speed`: tokens per second of our generator, of `generate` of transformers over the same batches of 16 (its prompts
  padded to the longest), and `ratio`; both greedy, on one thread.
- `stage`: texts per second of the stage `rephrase` over documents on this machine, of its generator alone over the
  same requests in the same batches, and `ratio`.
- `takedown`: `sources` that are taken down and erased of a root with a build, by half by id and by address; `left` are
  objects that have a text of these or of their offspring (0), `kept` texts of others that are there, of those `due`.

How faithful texts and planted contradictions are told apart is measured by `faithfulness.py`.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_tasks.generators.generator import Generator, Model, Request, Sampling
from pipeline_tasks.generators.prompt import PromptParams, read_prompts
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.rephrase import Params, plan_of, rephrase
from pipeline_tasks.stages.rephrase.writing import NothingKept, digest_of_model
from tests.erased_sources import measured
from tests.tiny_writer import paragraphs, trained

PARTS = ("bytes", "speed", "stage", "takedown")

TOKENS = 64
AT_ONCE = (1, 3, 16, 64)
BATCH = 16
TURNS = 3
DOCUMENTS = 32
"""Documents of a batch of the stage."""


def requests(count: int) -> list[Request]:
    """Return requests of so many paragraphs of the docs."""
    texts = [text[:400] for text in paragraphs()]
    return [Request("", texts[at % len(texts)], at) for at in range(count)]


def written(generator: Generator, asked: list[Request]) -> list[str | None]:
    """Return what is written, in the order of the requests."""
    found = dict(generator.write(asked))
    return [found[at].text for at in range(len(asked))]


def equal_bytes(folder: Path, count: int) -> dict[str, int]:
    """Return how many texts are the same as those of requests one by one."""
    from refinery_models.generators.transformers import load

    generator = load(Model(model=FilePath(str(folder))), Sampling(temperature=0.8, top_p=0.95, max_tokens=TOKENS))
    asked = requests(count)
    alone = [written(generator, [request])[0] for request in asked]
    found = {"of": count}
    for size in AT_ONCE:
        parts = [written(generator, asked[start : start + size]) for start in range(0, count, size)]
        found[f"by {size}"] = sum(one == other for one, other in zip(chain.from_iterable(parts), alone, strict=True))
    found["reversed"] = sum(
        one == other for one, other in zip(written(generator, asked[::-1])[::-1], alone, strict=True)
    )
    return found


def speed(folder: Path, count: int) -> dict[str, float]:
    """Return tokens per second of our generator and of the model's own loop."""
    import torch
    from refinery_models.generators.transformers import load
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    generator = load(Model(model=FilePath(str(folder))), Sampling(max_tokens=TOKENS))
    tokenizer = AutoTokenizer.from_pretrained(str(folder), padding_side="left")
    network = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    asked = requests(count)
    chats = [[{"role": "user", "content": request.user}] for request in asked]
    prompts = [tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]

    def ours() -> int:
        return sum(each.tokens_out for _, each in generator.write(asked))

    def theirs() -> int:
        tokens = 0
        for start in range(0, count, BATCH):
            batch = tokenizer(
                prompts[start : start + BATCH], return_tensors="pt", padding=True, add_special_tokens=False
            )
            kept = {name: batch[name] for name in ("input_ids", "attention_mask")}
            with torch.no_grad():
                out = network.generate(**kept, max_new_tokens=TOKENS, do_sample=False)[:, kept["input_ids"].shape[1] :]
            tokens += sum(_length(row.tolist(), tokenizer.eos_token_id) for row in out)
        return tokens

    return rated("tokens_per_second", "peer_tokens_per_second", ours, theirs)


def _length(tokens: list[int], end: int) -> int:
    return tokens.index(end) if end in tokens else len(tokens)


def rated(own: str, peer: str, ours: Callable[[], int], theirs: Callable[[], int]) -> dict[str, float]:
    """Return how many of a thing two ways give per second, and the ratio of both."""
    rates: dict[str, list[float]] = {own: [], peer: []}
    for run in (ours, theirs):
        run()
    for _ in range(TURNS):
        for name, run in ((own, ours), (peer, theirs)):
            began = time.perf_counter()
            count = run()
            rates[name].append(count / (time.perf_counter() - began))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return {
        **{name: round(value, 1) for name, value in medians.items()},
        "ratio": round(medians[own] / medians[peer], 3),
    }


def stage(folder: Path, count: int) -> dict[str, float]:
    """Return texts per second of the stage's kernel and of its generator over the same requests."""
    from refinery_models.generators.transformers import load

    model = Model(model=FilePath(str(folder)))
    params = Params(
        model, {"rewrite": PromptParams(file=FilePath(str(_prompt(folder))))}, sampling=Sampling(max_tokens=TOKENS)
    )
    generator = load(model, params.sampling)
    plan = plan_of(params, read_prompts(params.prompts))
    texts = [request.user for request in requests(count)]
    rows = [
        pa.record_batch({"text": pa.array(texts[at : at + DOCUMENTS], pa.large_string())})
        for at in range(0, count, DOCUMENTS)
    ]
    asked = [
        [
            each.request
            for text in batch.column("text").to_pylist()
            for each in plan.asked(text, digest_of_model(generator))
        ]
        for batch in rows
    ]

    def of_stage() -> int:
        kernel = partial(rephrase, prompts=params.prompts, where=params.where, asking=plan_of(params))
        return sum(batch.num_rows for batch in kernel(generator, iter(rows), NothingKept()))

    def alone() -> int:
        return sum(len(dict(generator.write(batch))) for batch in asked)

    return rated("texts_per_second", "generator_texts_per_second", of_stage, alone)


def _prompt(folder: Path) -> Path:
    path = folder.parent / "prompt.md"
    path.write_text("---\ntitle: A short prompt\n---\n{text}\n", encoding="utf-8")
    return path


def measures(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parts that are asked for."""
    asked = options.only or PARTS
    of_model: dict[str, Callable[[Path, int], Mapping[str, Any]]] = {
        "bytes": equal_bytes,
        "speed": speed,
        "stage": stage,
    }
    if {*of_model} & {*asked}:
        trained(folder / "model")
    for name in asked:
        yield (
            name,
            of_model[name](folder / "model", options.texts) if name in of_model else measured(folder, 1100, 1000),
        )


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS)
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, values in measures(options, Path(folder)):
            found[name] = values
            print(name, " ".join(f"{key}={value}" for key, value in values.items()), flush=True)
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
