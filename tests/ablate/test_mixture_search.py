"""A search goes from a dataset to weights for a recipe; results of proxies are made up here by a known function."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from refinery_ablate.evidence import read_evidence
from refinery_ablate.mixture import search as searching
from refinery_ablate.mixture.found import Found, lines_of
from refinery_ablate.mixture.planning import Wanted, prepare
from refinery_ablate.mixture.pool import TOKENS, read_pool
from refinery_ablate.mixture.proxy_data import ProxyData
from refinery_ablate.mixture.search import judge, next_round
from refinery_ablate.mixture.search_page import PAGE
from refinery_ablate.mixture.search_plan import FOUND, SAMPLED, WITHOUT, Search, untrained
from refinery_ablate.mixture.search_record import record_search
from refinery_ablate.statistics import BETTER, SAME

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import DigestMismatch, RecipeError
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.publish import takedowns
from pipeline_tasks.publish.datasets.building import plan_of
from pipeline_tasks.publish.logs.ablation_log import LOG, MIXTURE, ablations
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.store.reading import read_manifest
from tests.ablate import planted_domains as domains
from tests.chain import built

GROUPS = ("noise", "one", "two")

FIRST_OF_NOISE = 62
"""The id of the first word of noise: 0 and 1 are the end token and the unknown one, and 60 words are before it."""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    return domains.dataset(tmp_path_factory.mktemp("domains"))


@pytest.fixture
def wanted(dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wanted:
    monkeypatch.setattr(searching, "RESAMPLES", 40)
    return domains.wanted(dataset, domains.held_out(tmp_path))


def known(shares: np.ndarray) -> float:
    """Both domains fall by a power of their tokens: half of each is best."""
    return float(0.5 + 0.1 * ((shares[1:] + 0.01) ** -0.5).sum())


def searched(wanted: Wanted, folder: Path, truth: domains.Truth, seed: int = 7) -> Found:
    search: Search | None = prepare(wanted, folder)
    while search:
        domains.put_results(folder, search, truth, seed=seed)
        latest, search = search, next_round(folder, search)
    return judge(folder, latest)


# --- What is found ------------------------------------------------------------------------------------------------


def test_the_best_weights_are_found_and_judged_by_fresh_runs(wanted: Wanted, tmp_path: Path) -> None:
    found = searched(wanted, tmp_path / "to", known)
    assert found.outcome == BETTER
    for name, share in domains.by_name(found.weights).items():
        assert abs(share - domains.BEST[name]) < 0.1
    for weight in found.weights:
        assert weight.low - 1e-9 <= weight.found <= weight.high + 1e-9
    assert found.check.correlation > 0.9
    assert found.check.regret < 0.02
    kinds = [proxy.kind for proxy in found.search.proxies]
    assert [kinds.count(kind) for kind in (WITHOUT, SAMPLED, FOUND)] == [3, 12 + 6, 3]
    assert "regret at 1" in "\n".join(lines_of(found))


def test_where_no_mixture_matters_the_prior_stays(wanted: Wanted, tmp_path: Path) -> None:
    found = searched(wanted, tmp_path / "to", lambda _: 1.0)
    assert found.outcome == SAME
    assert next(lines_of(found)).startswith("no mixture is seen to be better than the prior")
    mix = yaml.safe_load((tmp_path / "to" / "mixture.yaml").read_text())["mix"]
    assert mix["weights"] == pytest.approx(domains.PRIOR, abs=1e-4)


def test_luck_is_rarely_found(wanted: Wanted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fit always has a favorite; where no mixture matters, runs that did not choose it see nothing of it."""
    monkeypatch.setattr(searching, "RESAMPLES", 1)
    prepare(replace(wanted, rounds=1), tmp_path / "planned")
    outcomes = []
    for seed in range(20):
        folder = Path(shutil.copytree(tmp_path / "planned", tmp_path / f"{seed}"))
        found = searched(replace(wanted, rounds=1), folder, lambda _: 1.0, seed)
        outcomes.append(found.outcome)
        assert found.differences
    assert outcomes.count(SAME) >= 19


def test_a_recipe_takes_the_found_mixture(wanted: Wanted, tmp_path: Path, dataset: str) -> None:
    found = searched(wanted, tmp_path / "to", known)
    mix = yaml.safe_load((tmp_path / "to" / "mixture.yaml").read_text())["mix"]
    root, tokenizer = dataset.rpartition("/")[0], Path(dataset).parents[1] / "tokenizer.json"
    stages = {"tokenize": {"tokenizer": str(tokenizer)}, "select": {}, "mix": mix, "shuffle": {"buckets": 2}}
    recipe = {"name": "mixed", "versions": {"recipe": "made_up"}, "stages": stages | {"pack": {"length": 64}}}
    version = built(root, parse_recipe(recipe, "mixed.yaml"))
    plan = plan_of(root, {stage: read_manifest(root, path) for stage, path in version.manifests.items()})
    total = sum(row["taken"] for row in plan)
    assert total == pytest.approx(found.search.asked.budget, rel=0.01)
    for row in plan:
        assert row["taken"] / total == pytest.approx(domains.by_name(found.weights)[row["group"]], abs=0.01)
        assert row["limited_by"] in ("", "budget_tokens")


def test_more_rounds_go_on_with_the_same_proxies(wanted: Wanted, tmp_path: Path) -> None:
    first = searched(wanted, tmp_path / "to", known)
    more = searched(replace(wanted, rounds=3), tmp_path / "to", known)
    assert more.search.proxies[: len(first.search.proxies)] == first.search.proxies
    assert max(proxy.round for proxy in more.search.proxies) == 3


def test_no_group_is_used_more_often_than_asked(wanted: Wanted, tmp_path: Path) -> None:
    """`one` and `two` may give a third each of four passes: the rest has to be noise."""
    asked = replace(wanted, max_epochs=1.2, prior={"noise": 1, "one": 1, "two": 1})
    found = searched(asked, tmp_path / "to", known)
    for proxy in found.search.proxies:
        for taken, group in zip(proxy.sequences, found.search.groups, strict=True):
            assert taken <= 1.2 * group.pooled
    mix = yaml.safe_load((tmp_path / "to" / "mixture.yaml").read_text())["mix"]
    for group in found.search.groups:
        assert mix["weights"][group.name] * mix["budget_tokens"] <= 1.2 * group.tokens
    assert any("at the limit of 1.2 passes" in line for line in lines_of(found))


def test_the_page_opens_offline_and_says_what_cannot_be_said(wanted: Wanted, tmp_path: Path) -> None:
    searched(wanted, tmp_path / "to", known)
    page = (tmp_path / "to" / PAGE).read_text()
    assert not re.search(r'(src|href)="(https?:)?//', page)
    for text in ("The found mixture is better than the prior", "regret at 1", "What cannot be said", "size smoke"):
        assert text in page


# --- What proxies are trained on ----------------------------------------------------------------------------------


def test_a_proxy_takes_its_groups_to_the_token(wanted: Wanted, tmp_path: Path) -> None:
    """Each domain has words of its own, so the tokens of a batch say what it was taken from."""
    search = prepare(wanted, tmp_path / "to")
    pool = read_pool(tmp_path / "to", search.pool)
    for proxy in search.proxies[::4]:
        data = ProxyData(pool, proxy, search.batch)
        ids = np.concatenate([batch["input_ids"] for batch in data.batches(0)])
        domain = (ids.max(axis=1) - 2) // 30
        assert ids.shape == (search.sequences, search.length)
        assert [int((domain == at).sum()) for at in (2, 0, 1)] == list(proxy.sequences)
        order = data.sequences_at(np.arange(search.sequences))
        uses = np.bincount(order, minlength=len(pool.tokens))
        for first, count, taken in zip(np.cumsum([0, *pool.sequences]), pool.sequences, proxy.sequences, strict=False):
            own = uses[first : first + count]
            assert own.max() - own.min() <= 1
            assert own.sum() == taken


def test_a_proxy_goes_on_at_any_step(wanted: Wanted, tmp_path: Path) -> None:
    search = prepare(wanted, tmp_path / "to")
    pool = read_pool(tmp_path / "to", search.pool)
    data = ProxyData(pool, search.proxies[5], search.batch)
    whole = list(data.batches(0))
    rest = list(data.batches(7))
    assert len(whole) == search.steps
    for one, other in zip(whole[7:], rest, strict=True):
        assert np.array_equal(one["input_ids"], other["input_ids"])
        assert np.array_equal(one["cu_seqlens"], other["cu_seqlens"])


def test_documents_begin_where_the_batch_says(wanted: Wanted, tmp_path: Path) -> None:
    """A document ends with the end token: behind each, and at the beginning of each sequence, something begins."""
    search = prepare(wanted, tmp_path / "to")
    batch = next(iter(ProxyData(read_pool(tmp_path / "to", search.pool), search.proxies[0], search.batch).batches(0)))
    flat = batch["input_ids"].reshape(-1)
    begins = np.union1d(np.flatnonzero(flat == 0) + 1, np.arange(0, len(flat) + 1, search.length))
    assert batch["cu_seqlens"].tolist() == begins.tolist()


def test_what_was_taken_down_trains_no_proxy(tmp_path: Path) -> None:
    dataset = domains.dataset(tmp_path, 60)
    root = dataset.rpartition("/")[0]
    asked = domains.wanted(dataset, domains.held_out(tmp_path), tokens=10_000)
    by_length = replace(asked, by="n_tokens", bands=(100.0,), prior=None)
    before = prepare(by_length, tmp_path / "before")
    takedowns.record(root, [("site", "noise.example")], "asked for")
    with pytest.raises(RecipeError, match="noise"):
        prepare(asked, tmp_path / "by source")
    after = prepare(by_length, tmp_path / "after")
    of_noise = [
        bool((read_pool(tmp_path / name, search.pool).tokens >= FIRST_OF_NOISE).any())
        for name, search in (("before", before), ("after", after))
    ]
    assert of_noise == [True, False]


def test_small_groups_are_joined_and_come_apart_in_the_recipe(wanted: Wanted, tmp_path: Path) -> None:
    found = searched(replace(wanted, least=0.333, prior=None), tmp_path / "to", lambda shares: float(shares[0]))
    (joined,) = [group for group in found.search.groups if len(group.members) > 1]
    mix = yaml.safe_load((tmp_path / "to" / "mixture.yaml").read_text())["mix"]
    assert set(mix["weights"]) == set(GROUPS)
    first, second = joined.members
    wanted_ratio = joined.members[first] / joined.members[second]
    assert mix["weights"][first] / mix["weights"][second] == pytest.approx(wanted_ratio, rel=0.01)


def test_a_column_of_numbers_is_cut(wanted: Wanted, tmp_path: Path) -> None:
    search = prepare(replace(wanted, by="n_tokens", bands=(100.0,), prior=None), tmp_path / "to")
    assert [group.name for group in search.groups] == ["..100", "100.."]


# --- Refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"by": "topic"}, "topic"),
        ({"by": "snapshot", "prior": None}, "snapshot"),
        ({"prior": {"three": 1.0}}, "three"),
        ({"prior": {"one": 0.0}}, "above 0"),
        ({"budget": 50_000}, "60,000"),
        ({"budget": 10_000_000}, "10,000,000"),
        ({"prior": {"one": 1.0}, "max_epochs": 2.0}, "one"),
        ({"seeds": 1}, "seeds"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    wanted: Wanted, tmp_path: Path, changes: dict[str, object], named: str
) -> None:
    with pytest.raises(RecipeError, match=named):
        prepare(replace(wanted, **changes), tmp_path / "to")  # type: ignore[arg-type]  # by name
    assert not (tmp_path / "to" / "search.json").exists()


def test_a_folder_has_one_search(wanted: Wanted, tmp_path: Path) -> None:
    prepare(wanted, tmp_path / "to")
    with pytest.raises(RecipeError, match="max_epochs"):
        prepare(replace(wanted, max_epochs=3.0), tmp_path / "to")


def test_a_folder_of_a_comparison_takes_no_search(wanted: Wanted, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(RecipeError, match="comparison"):
        prepare(wanted, tmp_path)


def test_a_damaged_pool_trains_no_proxy(wanted: Wanted, tmp_path: Path) -> None:
    search = prepare(wanted, tmp_path)
    body = bytearray((tmp_path / TOKENS).read_bytes())
    body[-1] ^= 1
    (tmp_path / TOKENS).write_bytes(body)
    with pytest.raises(DigestMismatch, match=TOKENS):
        read_pool(tmp_path, search.pool)


def test_a_search_is_judged_when_all_proxies_have_ended(wanted: Wanted, tmp_path: Path) -> None:
    search = prepare(wanted, tmp_path / "to")
    with pytest.raises(RecipeError, match="proxy-0000"):
        judge(tmp_path / "to", search)


def test_the_command_leaves_the_runs_to_another_machine(
    wanted: Wanted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "model",
        "mixture",
        "--dataset",
        wanted.dataset,
        "--held-out",
        *wanted.sets,
        "--to",
        str(tmp_path / "to"),
    ]
    command += ["--prior", domains.GIVEN, "--tokens", "60000", "--mixtures", "12", "--threads", "1"]
    command += ["--rates", "0.002"]
    folder = tmp_path / "to"
    for planned in (18, 24, 27):
        assert main([*command, "--prepare", "--json"]) == 0
        assert "python -m refinery_ablate" in capsys.readouterr().err
        search = prepare(wanted, folder)
        assert len(search.proxies) == planned
        assert untrained(folder, search)
        domains.put_results(folder, search, known)
    record = shutil.copytree(wanted.dataset.rpartition("/")[0], tmp_path / "root")
    assert main([*command, "--prepare", "--json", "--record", str(record)]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["outcome"] == BETTER
    assert f"{record}/{LOG.entry_path(1)}" in said.err


def test_what_was_found_is_an_entry_of_the_root_of_its_dataset(wanted: Wanted, tmp_path: Path, dataset: str) -> None:
    root = str(shutil.copytree(dataset.rpartition("/")[0], tmp_path / "root"))
    wanted = replace(wanted, dataset=f"{root}/{dataset.rpartition('/')[2]}")
    found = searched(wanted, tmp_path / "to", known)
    before = len(ablations(root))
    (recorded,) = record_search(found, tmp_path / "to")
    assert record_search(found, tmp_path / "to") == [recorded]
    entry = ablations(root)[before]
    assert (entry.kind, entry.outcome, recorded.number) == (MIXTURE, BETTER, entry.number)
    given, chosen = entry.arms
    assert given.weights == pytest.approx(domains.PRIOR, abs=0.02)
    assert chosen.weights == pytest.approx(domains.by_name(found.weights), abs=0.02)
    assert replace(given, weights={}) == replace(chosen, weights={})
    assert [(each.rate, each.low) for each in entry.differences] == [(0.002, found.differences[0.002].low)]
    assert entry.seconds == 2 * 3 * 36.0, "what chose it is not what judged it"
    evidence = read_evidence(root, entry)
    assert evidence is not None
    assert evidence.means[1] < evidence.means[0]
    assert {row["group"] for row in evidence.mixture} == set(GROUPS)
    assert [row["mean"] for row in evidence.curves[0.002]] == [4.0, 3.0, 4.0, 3.0]
    with Ledger.open(ledger_of(root)) as ledger:
        assert ledger.query("ablations")[-1]["kind"] == MIXTURE


def test_a_fit_that_finds_the_prior_records_nothing(wanted: Wanted, tmp_path: Path) -> None:
    found = replace(searched(wanted, tmp_path / "to", known), differences={}, groups={})
    assert record_search(found, tmp_path / "to") == []


@pytest.mark.parametrize(
    "arguments",
    [["--prior", "one"], ["--prior", "one=-1"], ["--bands", "3,2"], ["--bands", "x"], ["--max-epochs", "0"]],
)
def test_arguments_that_are_none_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "model",
        "mixture",
        "--dataset",
        "x/y@1",
        "--by",
        "n_tokens",
        "--held-out",
        "z",
        "--to",
        "to",
        *arguments,
    ]
    assert main([*command, "--prepare"]) == 78
    assert arguments[0] in capsys.readouterr().err
