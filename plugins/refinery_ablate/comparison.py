"""Prepares a comparison of two training datasets, and judges it by the results of its runs."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_tasks.cards import one_that, tokenizes
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.exports.tokenizer import Tokenizer, tokenizer_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.training.dataset import TokenDataset
from refinery_ablate.held_out import HeldOut, load_held_out
from refinery_ablate.held_out_sets import LEAST_DOCUMENTS, read_items, unseen
from refinery_ablate.job import (
    HELD_OUT,
    PLAN,
    Arm,
    Job,
    Plan,
    jobs_of,
    read_plan,
    read_result,
    unfinished,
    widened,
)
from refinery_ablate.mixture.search_plan import SEARCH
from refinery_ablate.report import write_report
from refinery_ablate.sizes import SMOKE, size_of
from refinery_ablate.statistics import (
    LEAST_SEEDS,
    Difference,
    Floats,
    bits_per_byte,
    detectable,
    difference,
    outcome,
    pooled_deviation,
)
from refinery_ablate.verdict import Noise, Verdict

VERDICT = "verdict.json"

SHARED = "shared.json"
"""How many held-out documents were left out, because an arm has them."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for: datasets as ROOT/NAME@VERSION, held-out sets, and how models are trained.

    A comparison has two arms, an attribution one more for each stage. `tokens` of 0 are those of the smallest arm.
    `rates` are those of the size unless some are named.
    """

    arms: tuple[str, ...]
    sets: tuple[str, ...]
    size: str = SMOKE
    tokens: int = 0
    seeds: int = 3
    rates: tuple[float, ...] = ()
    threads: int = 2


# --- Before -------------------------------------------------------------------------------------------------------


def prepare(wanted: Wanted, folder: Path) -> Plan:
    """Write the plan and the held-out documents of a comparison, or return the plan that is there.

    RecipeError for arms that cannot be compared, for a folder of another comparison, and for held-out sets of which
    the arms leave too little.
    """
    require_possible(wanted)
    datasets = [TokenDataset(uri) for uri in wanted.arms]
    tokenizers = [_tokenizer(uri) for uri in wanted.arms]
    _require_alike(wanted, datasets, tokenizers)
    sequences = [_sequences(dataset) for dataset in datasets]
    held_out, shared = unseen(wanted.sets, tokenizers[0], sequences)
    folder.mkdir(parents=True, exist_ok=True)
    held_out.save(folder / f"{HELD_OUT}.new")
    digest = hashlib.sha256((folder / f"{HELD_OUT}.new").read_bytes()).hexdigest()
    plan = _plan(wanted, datasets, tokenizers[0], digest)
    _require_same(folder, plan)
    (folder / SHARED).write_text(json.dumps(shared) + "\n")
    (folder / f"{HELD_OUT}.new").replace(folder / HELD_OUT)
    (folder / PLAN).write_bytes(plan.body())
    return plan


def require_possible(wanted: Wanted) -> None:
    """Raise RecipeError for what would end a comparison after its arms are made: sizes, seeds and held-out sets."""
    size_of(wanted.size)
    if wanted.seeds < LEAST_SEEDS:
        message = f"{wanted.seeds} seeds show no noise; name {LEAST_SEEDS} or more"
        raise RecipeError(message)
    read_items(wanted.sets)


def _plan(wanted: Wanted, datasets: Sequence[TokenDataset], tokenizer: Tokenizer, held_out: str) -> Plan:
    size = size_of(wanted.size)
    arms = tuple(
        Arm(name, dataset.uri, dataset.index.digest, dataset.index.tokens, dataset.index.sequences)
        for name, dataset in zip(wanted.arms, datasets, strict=True)
    )
    return Plan(
        arms=arms,
        size=size.name,
        tokens=wanted.tokens or min(arm.tokens for arm in arms),
        rates=wanted.rates or size.rates,
        seeds=tuple(range(wanted.seeds)),
        length=datasets[0].index.length,
        vocabulary=widened(tokenizer.vocab_size),
        eos=tokenizer.eos_id,
        held_out=held_out,
        threads=wanted.threads,
    )


def _require_alike(wanted: Wanted, datasets: Sequence[TokenDataset], tokenizers: Sequence[Tokenizer]) -> None:
    """Raise RecipeError for arms of which models could not be compared."""
    alike = [(tokenizer.digest, own.index.length) for tokenizer, own in zip(tokenizers, datasets, strict=True)]
    differing = next((name for name, each in zip(wanted.arms, alike, strict=True) if each != alike[0]), "")
    if differing:
        message = (
            f"{wanted.arms[0]} and {differing} have other tokenizers or lengths of sequences; build both with the "
            "same `tokenize: {tokenizer: ...}` and `pack: {length: ...}`"
        )
        raise RecipeError(message)


def _require_same(folder: Path, plan: Plan) -> None:
    """Raise RecipeError for a folder of another comparison; more seeds of the same one are welcome."""
    if (folder / SEARCH).exists():
        message = f"{folder} has a mixture search; name another --to"
        raise RecipeError(message)
    if not (folder / PLAN).exists():
        return
    there = read_plan(folder)
    differing = [name for name, value in asdict(plan).items() if name != "seeds" and asdict(there)[name] != value]
    if differing:
        message = f"{folder} has another comparison, with other {', '.join(differing)}; name another --to"
        raise RecipeError(message)


def _tokenizer(uri: str) -> Tokenizer:
    root, version = version_of(uri)
    return tokenizer_of(root, read_manifest(root, one_that(tokenizes, version.manifests)))


def version_of(uri: str) -> tuple[str, Version]:
    """Return root and version of ROOT/NAME@NUMBER or ROOT/NAME@latest; RecipeError for another name."""
    root, _, named = uri.rstrip("/").rpartition("/")
    name, _, number = named.partition("@")
    if not root or not name or not number:
        message = f"{uri[:200]!a}: name a training dataset as ROOT/NAME@NUMBER or ROOT/NAME@latest"
        raise RecipeError(message)
    version_log.require_kind(root, name, builds=True)
    if number == "latest":
        return root, version_log.current(root, name)
    versions = {str(version.number): version for version in version_log.versions(root, name)}
    if number not in versions:
        message = f"{uri}: {name} has no version {number[:20]!a}; it has {', '.join(versions)}"
        raise RecipeError(message)
    return root, versions[number]


def _sequences(dataset: TokenDataset) -> Iterator[Any]:
    for item in dataset:
        yield item["input_ids"].astype(np.int32)


# --- After --------------------------------------------------------------------------------------------------------


def tests_of(plan: Plan) -> int:
    """Return how many intervals of whole datasets hold together: one for each arm beside the first, and rate."""
    return (len(plan.arms) - 1) * len(plan.rates)


def noise_of(folder: Path, plan: Plan) -> Noise:
    """Return what the finished runs of the first arm say of the whole comparison, by the rate that trains well."""
    held_out, rate = load_held_out(folder / HELD_OUT), max(plan.rates)
    deviation = pooled_deviation([bits_per_byte(bits_of_arm(folder, plan, 0, rate), held_out.sizes)])
    seconds = float(np.mean([read_result(folder, Job(0, rate, seed))["seconds"] for seed in plan.seeds]))
    return Noise(deviation, detectable(deviation, len(plan.seeds), tests_of(plan)), seconds)


def judge(folder: Path, usd_per_hour: float = 0.0) -> Verdict:
    """Judge a comparison whose runs have all ended; store the verdict and its page, `report.html`.

    `usd_per_hour` is what the page reckons a device's hour at (0: it names none). RecipeError while runs are missing.
    """
    plan = read_plan(folder)
    require_finished(folder, plan)
    held_out = load_held_out(folder / HELD_OUT)
    bits = {rate: [bits_of_arm(folder, plan, arm, rate) for arm in (0, 1)] for rate in plan.rates}
    tests = len(plan.rates)  # either rate may see a difference: with each at 95 %, equal arms would pass in nine of ten
    differences = {
        rate: difference(first, second, held_out.sizes, tests=tests) for rate, (first, second) in bits.items()
    }
    best = bits[max(plan.rates)]
    deviation = pooled_deviation([bits_per_byte(arm, held_out.sizes) for arm in best])
    verdict = Verdict(
        outcome(differences),
        differences,
        dict(differences_by_group(best, held_out)),
        tuple(float(bits_per_byte(arm, held_out.sizes).mean()) for arm in best),
        deviation,
        detectable(deviation, len(plan.seeds), tests),
        float(np.mean([read_result(folder, job)["seconds"] for job in jobs_of(plan)])),
        plan,
        json.loads((folder / SHARED).read_bytes()),
    )
    (folder / VERDICT).write_text(json.dumps(verdict.facts(), indent=1, sort_keys=True) + "\n")
    write_report(folder, verdict, held_out, LEAST_DOCUMENTS, usd_per_hour)
    return verdict


def require_finished(folder: Path, plan: Plan) -> None:
    """Raise RecipeError while runs are missing."""
    left = unfinished(folder, plan)
    if left:
        message = (
            f"{folder}: {len(left)} of {len(list(jobs_of(plan)))} runs have no result, first {left[0].name}; run them"
        )
        raise RecipeError(message)


def bits_of_arm(folder: Path, plan: Plan, arm: int, rate: float) -> Floats:
    """Return the bits of an arm's finished runs at a rate: seeds x held-out documents."""
    return np.array([read_result(folder, Job(arm, rate, seed))["bits"] for seed in plan.seeds], np.float64)


def differences_by_group(bits: Sequence[Floats], held_out: HeldOut) -> Iterator[tuple[str, Difference]]:
    """Yield the difference in each domain and language with enough documents; intervals hold for all together."""
    members: dict[str, list[int]] = {}
    for kind, names in (("domain", held_out.domains), ("language", held_out.languages)):
        for number, name in enumerate(names):
            members.setdefault(f"{kind} {name}", []).append(number)
    large = {name: numbers for name, numbers in sorted(members.items()) if len(numbers) >= LEAST_DOCUMENTS}
    for name, numbers in large.items():
        first, second = (arm[:, numbers] for arm in bits)
        yield name, difference(first, second, held_out.sizes[numbers], tests=len(large))
