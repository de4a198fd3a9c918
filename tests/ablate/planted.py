"""Training datasets of a made-up language, whole or with a planted fault, and held-out documents of it."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from refinery_ablate.held_out import load_held_out
from refinery_ablate.job import HELD_OUT, RESULT, Plan, jobs_of
from tokenizers import Tokenizer, models, pre_tokenizers

from pipeline_tasks.recipe import Recipe, parse_recipe
from tests.chain import How, built, refined

WORDS = [f"w{number}" for number in range(300)]

LENGTH = 64

RECIPE = """
name: made_up
stages:
  ingest: {}
  extract: {min_chars: 1}
  dedup_exact: {buckets: 1}
"""

Text = list[str]
Fault = Callable[[list[Text], random.Random], list[Text]]


def language(seed: int = 0) -> dict[str, list[str]]:
    """Return which words follow which: a few for each."""
    draws = random.Random(seed)
    return {word: draws.sample(WORDS, 5) for word in WORDS}


def texts(count: int, seed: int, follows: dict[str, list[str]] | None = None) -> list[Text]:
    """Return texts of the language."""
    draws, follows = random.Random(seed), follows or language()
    made = []
    for _ in range(count):
        words = [draws.choice(WORDS)]
        for _ in range(draws.randrange(60, 140)):
            words.append(draws.choice(follows[words[-1]]) if draws.random() < 0.95 else draws.choice(WORDS))
        made.append(words)
    return made


def whole(made: list[Text], _: random.Random) -> list[Text]:
    return made


def shuffled(made: list[Text], draws: random.Random) -> list[Text]:
    """A fifth of the texts has its words in disorder."""
    return [draws.sample(words, len(words)) if at % 5 == 0 else words for at, words in enumerate(made)]


def boilerplate(made: list[Text], draws: random.Random) -> list[Text]:
    """A fifth of the words is a menu that each text begins with."""
    menu = draws.sample(WORDS, 20)
    return [[*menu, *words[: len(words) - 20]] for words in made]


def repeated(made: list[Text], draws: random.Random) -> list[Text]:
    """A tenth of the texts, ten times, each with one other word."""
    kept = made[: len(made) // 10]
    copies = []
    for words in kept:
        for _ in range(10):
            copy = list(words)
            copy[draws.randrange(len(copy))] = draws.choice(WORDS)
            copies.append(copy)
    return copies


def arm(folder: Path, name: str, made: Sequence[Text]) -> str:
    """Refine and build texts; return the dataset as ROOT/NAME@VERSION."""
    landing, root, tokenizer = folder / name / "landing", folder / name / "root", folder / "tokenizer.json"
    landing.mkdir(parents=True)
    records = ({"text": " ".join(words), "url": f"https://{name}.example/{at}"} for at, words in enumerate(made))
    (landing / "a.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    if not tokenizer.exists():
        write_tokenizer(tokenizer)
    recipe = folder / "made_up.yaml"
    recipe.write_text(RECIPE)
    refined(str(root), str(landing), How(recipe=str(recipe)))
    version = built(str(root), build_recipe(tokenizer))
    return f"{root}/{version.recipe}@{version.number}"


def put_results(folder: Path, plan: Plan, shift: float, shift_of_small: float | None = None) -> None:
    """Write results as runs do: the second arm differs by `shift` bits per byte, at the small rate by its own."""
    small = shift if shift_of_small is None else shift_of_small
    sizes = load_held_out(folder / HELD_OUT).sizes
    for job in jobs_of(plan):
        draws = np.random.default_rng([job.arm, job.seed, int(job.rate * 1e6)])
        is_small = job.rate < max(plan.rates)
        bits = sizes * (1.0 + (small if is_small else shift) * job.arm + draws.normal(0, 0.001))
        (folder / job.name).mkdir(parents=True)
        result = {
            "steps": 10,
            "bits": bits.tolist(),
            "losses": [[at, 12 / at + 0.1 * job.seed + job.arm] for at in range(1, 11)],
            "seconds": 36.0,
            "model": "",
            "held_out": "",
        }
        (folder / job.name / RESULT).write_text(json.dumps(result))


def build_recipe(tokenizer: Path) -> Recipe:
    """Return the recipe of an arm: all documents, once, with a mixture of one group."""
    stages = {
        "tokenize": {"tokenizer": str(tokenizer)},
        "select": {},
        "mix": {"by": "source"},
        "shuffle": {"buckets": 2},
        "pack": {"length": LENGTH},
    }
    return parse_recipe({"name": "corpus", "versions": {"recipe": "made_up"}, "stages": stages}, "corpus.yaml")


def write_tokenizer(path: Path) -> None:
    vocabulary = {name: number for number, name in enumerate(["<|endoftext|>", "[UNK]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(path))


def held_out(folder: Path, count: int = 200, made: Sequence[Text] | None = None) -> str:
    """Write held-out texts of the language; return their file."""
    path = folder / "held-out.jsonl"
    lines = (
        json.dumps({"text": " ".join(words), "domain": f"part {at % 2}", "language": "made-up"})
        for at, words in enumerate(made or texts(count, 999))
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)
