"""Plans a mixture search: its groups, their pool, and the proxies of each round."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from pipeline_tasks.cards import one_that, plans_mixture, tokenizes
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.datasets.building import plan_of
from pipeline_tasks.publish.exports.tokenizer import tokenizer_of
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.training.dataset import TokenDataset
from refinery_ablate.comparison import SHARED, version_of
from refinery_ablate.held_out_sets import unseen
from refinery_ablate.job import HELD_OUT, PLAN, TrainingPlan, widened
from refinery_ablate.mixture import swarm
from refinery_ablate.mixture.documents import Documents, documents_of, joined_small, pooled
from refinery_ablate.mixture.pool import Pool, save_pool
from refinery_ablate.mixture.search_plan import (
    FOUND,
    PRIOR,
    SAMPLED,
    SEARCH,
    WITHOUT,
    Asked,
    Counts,
    Group,
    Kind,
    Proxy,
    Search,
    read_search,
    write_search,
)
from refinery_ablate.mixture.swarm import Shares
from refinery_ablate.sizes import SMOKE, size_of
from refinery_ablate.statistics import LEAST_SEEDS

OTHERS = "(others)"
"""The name of small groups that are joined."""

LANGUAGE = "language"

PER_PARAMETER = 20
"""Tokens of a run for each parameter of its model, if nothing is said (Hoffmann et al., arXiv 2203.15556)."""

PER_GROUP, LEAST_MIXTURES = 5, 16
"""Sampled mixtures of the first round for each group: a swarm grows with the groups (arXiv 2602.12237)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for: `Asked` with 0 and "" for what follows from the dataset, and how models are trained."""

    dataset: str
    sets: tuple[str, ...]
    by: str = ""
    bands: tuple[float, ...] = ()
    prior: Mapping[str, float] | None = None
    budget: int = 0
    max_epochs: float = 4.0
    least: float = 0.01
    mixtures: int = 0
    rounds: int = 2
    seeds: int = 3
    rates: tuple[float, ...] = ()
    size: str = SMOKE
    tokens: int = 0
    threads: int = 2


# --- The first round ----------------------------------------------------------------------------------------------


def prepare(wanted: Wanted, folder: Path) -> Search:
    """Write the plan, the pool and the held-out documents of a search, or return the search that is there.

    RecipeError for a folder of another search, and for what cannot be searched.
    """
    if wanted.seeds < LEAST_SEEDS:
        message = f"{wanted.seeds} seeds show no noise; name {LEAST_SEEDS} or more"
        raise RecipeError(message)
    if (folder / PLAN).exists():
        message = f"{folder} has a comparison of two datasets; name another --to"
        raise RecipeError(message)
    root, version = version_of(wanted.dataset)
    manifests = {stage: read_manifest(root, path) for stage, path in version.manifests.items()}
    plans = plan_of(root, manifests)
    mixed_by = str(one_that(plans_mixture, manifests).params["by"]) if plans else LANGUAGE
    dataset = TokenDataset(wanted.dataset)
    asked = _asked(wanted, version, mixed_by, dataset.index.tokens)
    if (folder / SEARCH).exists():
        return _continued(folder, asked, wanted)
    documents = documents_of(root, version, asked.by, asked.bands)
    tokenizer = tokenizer_of(root, one_that(tokenizes, manifests))
    taken = {row["group"]: row["taken"] for row in plans} if asked.by == mixed_by and not asked.bands else {}
    training = TrainingPlan(
        size=wanted.size,
        tokens=_run_tokens(wanted, asked),
        length=dataset.index.length,
        vocabulary=widened(tokenizer.vocab_size),
        eos=tokenizer.eos_id,
        held_out="",
        threads=wanted.threads,
    )
    groups = _groups(documents, asked, training, taken)
    folder.mkdir(parents=True, exist_ok=True)
    pool = _pool(documents, groups, training.length)
    held_out, shared = unseen(asked.sets, tokenizer, [map(np.asarray, pool.tokens.astype(np.int32))])
    held_out.save(folder / HELD_OUT)
    (folder / SHARED).write_text(json.dumps(shared) + "\n")
    digest = hashlib.sha256((folder / HELD_OUT).read_bytes()).hexdigest()
    fields = asdict(replace(training, held_out=digest))
    named = {name for group in groups for name in group.members}
    left_out = tuple(name for name, count in documents.tokens().items() if count and name not in named)
    stored = save_pool(folder, pool)
    search = Search(**fields, asked=asked, groups=groups, left_out=left_out, pool=stored, proxies=())
    search = replace(search, proxies=tuple(_first_round(search)))
    write_search(folder, search)
    return search


def _asked(wanted: Wanted, version: Version, mixed_by: str, tokens: int) -> Asked:
    return Asked(
        dataset=wanted.dataset,
        prefix=version.prefix,
        by=wanted.by or mixed_by,
        bands=wanted.bands,
        sets=wanted.sets,
        prior=wanted.prior or {},
        budget=wanted.budget or tokens,
        max_epochs=wanted.max_epochs,
        least=wanted.least,
        mixtures=wanted.mixtures,
        rounds=wanted.rounds,
        seeds=wanted.seeds,
        rates=wanted.rates or size_of(wanted.size).rates,
    )


def _continued(folder: Path, asked: Asked, wanted: Wanted) -> Search:
    """Return the search of a folder, with as many rounds as are asked for now; RecipeError if it is another one."""
    there = read_search(folder)
    fields = asdict(asked)
    differing = [name for name, value in asdict(there.asked).items() if name != "rounds" and value != fields[name]]
    differing += [name for name in ("size", "threads") if getattr(wanted, name) != getattr(there, name)]
    differing += ["tokens"] if wanted.tokens not in (0, there.tokens) else []
    if differing:
        message = f"{folder} has another search, with other {', '.join(differing)}; name another --to"
        raise RecipeError(message)
    return replace(there, asked=replace(there.asked, rounds=max(asked.rounds, there.asked.rounds)))


def _run_tokens(wanted: Wanted, asked: Asked) -> int:
    """Return the tokens of a run; RecipeError if they are more than those of the training that it stands for."""
    tokens = wanted.tokens or min(asked.budget, PER_PARAMETER * size_of(wanted.size).parameters)
    if tokens > asked.budget:
        message = (
            f"--tokens {tokens:,} are more than the training has that the weights are for ({asked.budget:,}); name "
            "fewer, or more by --budget-tokens"
        )
        raise RecipeError(message)
    return tokens


# --- Groups -------------------------------------------------------------------------------------------------------


def _groups(documents: Documents, asked: Asked, training: TrainingPlan, taken: Mapping[str, int]) -> tuple[Group, ...]:
    """Return the groups of a search, those that have too little joined.

    A pool has the same share of its group as a run has of the training that it stands for: what a proxy takes of a
    group it repeats as often as that training would.
    """
    tokens = documents.tokens()
    prior = _prior(asked, tokens, taken)
    run, length = training.steps * training.batch * training.length, training.length

    def pooled_of(members: Sequence[str]) -> int:
        return sum(tokens[name] for name in members) * min(run, asked.budget) // asked.budget // length

    large, small = joined_small(tokens, asked.least)
    small += [name for name in large if not pooled_of([name])]
    parts = [[name] for name in large if name not in small] + ([small] if pooled_of(small) else [])
    wanted = [sum(prior.get(name, 0.0) for name in part) for part in parts]
    groups = tuple(
        Group(
            part[0] if len(part) == 1 else OTHERS,
            {name: tokens[name] for name in part},
            pooled_of(part),
            int(Fraction(asked.max_epochs) * pooled_of(part)),
            wanted[number] / (sum(wanted) or 1.0),
        )
        for number, part in enumerate(parts)
    )
    _require_mixable(groups, asked, training)
    return groups


def _prior(asked: Asked, tokens: Mapping[str, int], taken: Mapping[str, int]) -> Mapping[str, float]:
    """Return the mixture that is to be beaten: what was named, else that of the dataset, else what there is."""
    unknown = [name for name in asked.prior if not tokens.get(name)]
    if unknown:
        message = f"--prior: no document is of the group {unknown[0]!r}; groups are {_listed(tokens)}"
        raise RecipeError(message)
    if asked.prior and not any(asked.prior.values()):
        message = "--prior: at least one group has a weight above 0"
        raise RecipeError(message)
    return asked.prior or (taken if any(taken.values()) else tokens)


def _listed(names: Mapping[str, int], most: int = 20) -> str:
    return ", ".join([*list(names)[:most], *(["..."] if len(names) > most else [])])


def _require_mixable(groups: Sequence[Group], asked: Asked, training: TrainingPlan) -> None:
    """Raise RecipeError for groups of which there is nothing to search, or that cannot give what is asked."""
    total = training.steps * training.batch
    if len(groups) < 2:  # noqa: PLR2004 -- a mixture
        message = (
            f"{asked.dataset} has {counted(len(groups), 'group')} by {asked.by} with a sequence for proxies; name "
            "another column by --by, or more --tokens"
        )
        raise RecipeError(message)
    given = sum(group.most for group in groups)
    if given < total:
        message = (
            f"groups give {given:,} of the {total:,} sequences of a proxy if none is used "
            f"more than {asked.max_epochs:g} times in {asked.budget:,} tokens; raise --max-epochs, or lower "
            "--budget-tokens"
        )
        raise RecipeError(message)
    over = [group for group in groups if group.prior * asked.budget > asked.max_epochs * group.tokens * (1 + 1e-9)]
    if over:
        epochs = over[0].prior * asked.budget / over[0].tokens
        message = (
            f"the prior uses {over[0].name} {epochs:.1f} times, and a group may be used {asked.max_epochs:g} times; "
            "raise --max-epochs, or name another --prior"
        )
        raise RecipeError(message)


def _pool(documents: Documents, groups: Sequence[Group], length: int) -> Pool:
    numbers = {name: number for number, group in enumerate(groups) for name in group.members}
    return pooled(documents, numbers, [group.pooled for group in groups], length)


# --- Proxies ------------------------------------------------------------------------------------------------------


def mixtures_of_first(search: Search) -> int:
    """Return how many mixtures the first round samples."""
    return search.asked.mixtures or max(PER_GROUP * len(search.groups), LEAST_MIXTURES)


def mixtures_of_later(search: Search) -> int:
    """Return how many mixtures each later round samples: half as many, the best of the fit among them."""
    return -(-mixtures_of_first(search) // 2)


def prior_sequences(search: Search) -> Counts:
    """Return the prior in whole sequences."""
    return swarm.apportioned(search.prior, search.sequences, search.most)


def _first_round(search: Search) -> Iterator[Proxy]:
    total, prior = search.sequences, search.prior
    own = prior_sequences(search)
    planned: list[tuple[Kind, Counts]] = [(PRIOR, own)] * search.asked.seeds
    for group in range(len(search.groups)):
        left = swarm.without(prior, search.most, total, group)
        if left is not None and own[group]:
            planned.append((WITHOUT, left))
    sampled = swarm.around_prior(prior, search.most, total, mixtures_of_first(search), seed=1)
    planned += [(SAMPLED, mixture) for mixture in sampled]
    for number, (kind, mixture) in enumerate(planned):
        yield Proxy(number, kind, 1, search.rate, tuple(mixture.tolist()))


def with_round(search: Search, best: Shares) -> Search:
    """Return a search with one more round around the best shares of a fit."""
    number = max(proxy.round for proxy in search.proxies) + 1
    count = mixtures_of_later(search)
    mixtures = swarm.around_best(best, search.prior, search.most, search.sequences, count, seed=number)
    return _added(search, [(SAMPLED, search.rate, mixture) for mixture in mixtures], number)


def with_found(search: Search, best: Counts) -> Search:
    """Return a search with the runs that judge what was found: fresh ones, at each rate, beside those of the prior."""
    number = max(proxy.round for proxy in search.proxies)
    seeds = range(search.asked.seeds)
    planned: list[tuple[Kind, float, Counts]] = []
    for rate in sorted(search.asked.rates, reverse=True):
        if not any(proxy.kind == PRIOR and proxy.rate == rate for proxy in search.proxies):
            planned += [(PRIOR, rate, prior_sequences(search)) for _ in seeds]
        planned += [(FOUND, rate, best) for _ in seeds]
    return _added(search, planned, number)


def _added(search: Search, planned: Sequence[tuple[Kind, float, Counts]], number: int) -> Search:
    first = len(search.proxies)
    proxies = (
        Proxy(first + at, kind, number, rate, tuple(mixture.tolist()))
        for at, (kind, rate, mixture) in enumerate(planned)
    )
    return replace(search, proxies=(*search.proxies, *proxies))
