"""A training dataset of three made-up domains, of which two are worth the same and one is noise; and searches in it."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from refinery_ablate.held_out import load_held_out
from refinery_ablate.job import HELD_OUT, RESULT
from refinery_ablate.mixture.planning import Wanted
from refinery_ablate.mixture.search_plan import Search, untrained

from tests.ablate import planted
from tests.chain import How, built, refined

WORDS = {"one": planted.WORDS[:30], "two": planted.WORDS[30:60], "noise": planted.WORDS[60:90]}
"""The words of each domain: none has a word of another one."""

BEST = {"one": 0.5, "two": 0.5, "noise": 0.0}
"""The best shares where half of the held-out documents are of `one` and half of `two`, which are equally hard."""

PRIOR = {"one": 0.8, "two": 0.05, "noise": 0.15}
"""What a search has to beat."""

GIVEN = ",".join(f"{name}={share}" for name, share in PRIOR.items())
"""The same, for a command."""

Truth = Callable[[npt.NDArray[np.float64]], float]
"""Bits per byte of the shares of `noise`, `one` and `two`."""


def texts(domain: str, count: int, seed: int) -> list[list[str]]:
    """Return texts of a domain: each word has two that follow it, and in `noise` any word follows any."""
    words, draws = WORDS[domain], random.Random(seed)
    followers = random.Random(len(words[0]) + list(WORDS).index(domain))
    follows = {word: words if domain == "noise" else followers.sample(words, 2) for word in words}
    made = []
    for _ in range(count):
        text = [draws.choice(words)]
        for _ in range(draws.randrange(60, 140)):
            text.append(draws.choice(follows[text[-1]] if draws.random() < 0.95 else words))
        made.append(text)
    return made


def dataset(folder: Path, count: int = 300) -> str:
    """Refine and build so many texts of each domain; return the dataset as ROOT/NAME@VERSION."""
    landing, root = folder / "landing", folder / "root"
    landing.mkdir(parents=True)
    records = [
        {"text": " ".join(words), "url": f"https://{domain}.example/{at}", "source": domain}
        for number, domain in enumerate(WORDS)
        for at, words in enumerate(texts(domain, count, number))
    ]
    (landing / "a.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    planted.write_tokenizer(folder / "tokenizer.json")
    recipe = folder / "made_up.yaml"
    recipe.write_text(planted.RECIPE)
    refined(str(root), str(landing), How(recipe=str(recipe)))
    version = built(str(root), planted.build_recipe(folder / "tokenizer.json"))
    return f"{root}/{version.recipe}@{version.number}"


def held_out(folder: Path, count: int = 25) -> str:
    """Write so many held-out texts of both domains that are worth something; return their file."""
    path = folder / "held-out.jsonl"
    lines = (
        json.dumps({"text": " ".join(words), "domain": domain})
        for number, domain in enumerate(("one", "two"))
        for words in texts(domain, count, 900 + number)
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def wanted(uri: str, sets: str, **changes: object) -> Wanted:
    """Return a small search."""
    fields = {"prior": PRIOR, "tokens": 60_000, "rates": (2e-3,), "mixtures": 12, "threads": 1}
    return Wanted(uri, (sets,), **(fields | changes))  # type: ignore[arg-type]  # by name


LOSSES = [[5, 4.0], [10, 3.0]]
"""(step, mean loss of the steps up to it) of each run."""


def put_results(folder: Path, search: Search, truth: Truth, noise: float = 0.003, seed: int = 7) -> None:
    """Write the results of all planned proxies, as runs do: bits follow from the mixture, and noise from the seed."""
    sizes = load_held_out(folder / HELD_OUT).sizes
    for proxy in untrained(folder, search):
        draws = np.random.default_rng([seed, proxy.number])
        bits = sizes * (truth(proxy.weights) + draws.normal(0, noise) + draws.normal(0, noise, len(sizes)))
        (folder / proxy.name).mkdir()
        result = {"steps": 10, "bits": bits.tolist(), "losses": LOSSES, "seconds": 36.0, "model": "", "held_out": ""}
        (folder / proxy.name / RESULT).write_text(json.dumps(result))


def by_name(weights: Sequence[object]) -> dict[str, float]:
    """Return the found share of each group."""
    return {weight.name: weight.found for weight in weights}  # type: ignore[attr-defined]  # Weight
