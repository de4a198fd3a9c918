"""`refinery plan` computes what a training run asks for, from what was measured or published, and with the right units."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_study.plan import EXAMPLE
from refinery_study.plan.bases import (
    PUBLISHED_TOKEN_BYTES,
    TOKENS_PER_SHUFFLED_BYTE,
    measured_basis,
    published_basis,
)
from refinery_study.plan.demand import MONTH, Basis, Prices, Target, demand_of, loader_rate, total_kept
from refinery_study.plan.token_target import published_tokens
from refinery_study.plan.version_costs import version_basis, version_cost

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.tokens import tokens_of
from pipeline_tasks.ledger import Ledger
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import load_build, load_recipe
from pipeline_tasks.run.unit_costs import cost_of
from pipeline_tasks.store.reading import read_manifest
from tests import small_build
from tests.small_root import DAYS, RECIPE, STAGES, SmallRoot

SEED = Target(tokens=14.8e12, days=54, gpus=2048, token_bytes=4, refine_days=14)
"""The run of seed S3."""

PRICES = Prices(0.05, 0.023)
WORDS = ["--target-tokens", "14.8e12", "--days", "54", "--gpus", "2048"]


# --- The equations --------------------------------------------------------------------------------------------------


def test_the_loader_of_the_seed_reads_megabytes_a_second_and_not_gigabytes() -> None:
    """The seed prints 12.7 GB/s and 60 PB for them."""
    loader = loader_rate(SEED)
    assert loader.tokens_s == pytest.approx(3.172e6, rel=1e-3)
    assert loader.bytes_s == pytest.approx(12.7e6, rel=2e-3)
    assert loader.bytes == 59.2e12
    assert loader.bytes_s_per_gpu == pytest.approx(6.2e3, rel=1e-3)


def test_the_crawl_of_the_seed_follows_from_its_retention() -> None:
    demand = demand_of(published_basis(), SEED, PRICES)
    assert total_kept(demand.stages) == pytest.approx(0.0095)
    assert demand.content == pytest.approx(6.23e15, rel=1e-3)


@pytest.mark.parametrize("basis", [measured_basis(), published_basis()], ids=lambda basis: basis.name)
def test_a_plan_ends_with_the_tokens_that_it_begins_with(basis: Basis) -> None:
    """The bytes that `pack` reads have the target's tokens; by published retention they had three tenths of them."""
    demand = demand_of(basis, SEED, PRICES)
    packed = next(stage.reads for stage in demand.stages if stage.stage == "pack")
    assert packed * TOKENS_PER_SHUFFLED_BYTE == pytest.approx(SEED.tokens)


def test_published_bytes_of_text_follow_from_one_equation() -> None:
    """Of the content, half is text, and what `scrub_pii` leaves of that is 4 bytes of text per token."""
    demand = demand_of(published_basis(), SEED, PRICES)
    assert demand.shares_of == "bytes"
    assert demand.content * total_kept(demand.stages) == pytest.approx(SEED.tokens * PUBLISHED_TOKEN_BYTES)
    stages = {stage.stage: stage for stage in demand.stages}
    assert stages["extract"].stores == pytest.approx(stages["filter_url"].reads)


def test_what_is_measured_covers_every_stage_of_the_recipe() -> None:
    stages = [step.stage for recipe in (load_recipe("web"), load_build("corpus")) for step in recipe.steps]
    assert [rate.stage for rate in measured_basis().stages] == stages
    costs = {stage: cost_of(stage) for stage in stages}
    assert [stage for stage, cost in costs.items() if cost.rows is None] == ["pack"]
    assert all(cost.rows is not None for cost in costs.values() if cost.published is not None)


def test_bytes_that_a_stage_reads_are_those_that_the_one_before_passed_on() -> None:
    rates = {rate.stage: rate for rate in measured_basis().stages}
    assert rates["ingest"].reads == 1
    assert rates["filter_url"].reads == cost_of("ingest").kept * cost_of("extract").kept
    assert rates["filter_url"].seconds == pytest.approx(rates["filter_url"].reads * cost_of("filter_url").seconds / 1e6)
    published = {rate.stage: rate for rate in published_basis().stages}
    fewer = 0.4 * 0.5 / (0.934 * 0.735)
    text, published_text = rates["filter_url"].reads, published["filter_url"].reads
    assert published["dedup_exact"].reads / published_text == pytest.approx(rates["dedup_exact"].reads / text * fewer)


@given(st.floats(1, 1e15), st.floats(1.5, 100), st.floats(0.1, 1000))
def test_a_plan_is_linear_in_tokens_and_money_in_prices(tokens: float, times: float, days: float) -> None:
    target = replace(SEED, tokens=tokens, days=days, refine_days=days)
    plain, scaled = (demand_of(measured_basis(), replace(target, tokens=n), PRICES) for n in (tokens, tokens * times))
    for name in ("landed", "content", "core_hours", "stored", "core_money", "storage_money"):
        assert getattr(scaled, name) == pytest.approx(getattr(plain, name) * times)
    assert plain.core_money == pytest.approx(plain.core_hours * 0.05)
    assert plain.storage_money == pytest.approx(plain.stored / 1e9 * 0.023 * 2 * days * 86_400 / MONTH)
    assert plain.cores * days * 24 >= plain.core_hours * (1 - 1e-9) > (plain.cores - 1) * days * 24 * (1 - 1e-9)


# --- From a version -------------------------------------------------------------------------------------------------


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path) -> str:
    """A copy of the small root, whose ledger knows of the second day that every stage but `ingest` took an hour."""
    copy = tmp_path / "root"
    shutil.copytree(small_root.root, copy)
    version = version_log.versions(str(copy), RECIPE)[1]
    manifests = ordered_manifests(str(copy), version)
    with Ledger.open(str(copy / "ledger.sqlite")) as ledger:
        for stage in STAGES[1:]:
            path = version.manifests[stage].partition("@")[0]
            ledger.record_stage(path, manifests[stage], cpu=3600, recipe=RECIPE, snapshot=version.snapshot)
    return str(copy)


def plan_facts(capsys: pytest.CaptureFixture[str], *words: str, of: Sequence[str] = WORDS) -> Any:
    capsys.readouterr()
    assert main(["plan", *of, "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_plan_from_a_version_scales_what_the_version_took(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    facts = plan_facts(capsys, "--from", DAYS[1], root)
    (plan,) = facts["plans"]
    version = version_log.versions(root, RECIPE)[1]
    factor = 14.8e12 / version_cost(root, version).tokens
    manifests = ordered_manifests(root, version)
    assert plan["landed"] == pytest.approx(sum(shard.bytes for shard in manifests["land"].shards) * factor)
    stages = {stage["stage"]: stage for stage in plan["stages"]}
    assert list(stages) == list(STAGES)
    assert stages["extract"] | {"core_hours": 0} == {
        "stage": "extract",
        "kept": pytest.approx(11 / 12),
        "reads": pytest.approx(sum(shard.weight for shard in manifests["ingest"].shards) * factor),
        "stores": pytest.approx(sum(shard.bytes for shard in manifests["extract"].stored) * factor),
        "core_hours": 0,
        "source": "ledger",
    }
    assert stages["extract"]["core_hours"] == pytest.approx(factor)
    seconds = stages["ingest"]["reads"] / 1e6 * cost_of("ingest").seconds
    assert (stages["ingest"]["source"], stages["ingest"]["core_hours"]) == ("unit cost", pytest.approx(seconds / 3600))
    assert plan["kept"] == pytest.approx(6 / 13)
    assert facts["target"]["token_bytes"] == 4, "nothing says how a build of it would store them"


def test_what_is_foretold_of_a_version_is_shown_beside_what_it_took(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    forecast = plan_facts(capsys, "--from", "2", root)["forecast"]
    landed = forecast["landed"]
    stages = {stage["stage"]: stage for stage in forecast["stages"]}
    assert stages["ingest"]["reads"] == {"foretold": landed, "measured": landed}
    assert stages["ingest"]["seconds"]["measured"] is None
    assert stages["extract"]["seconds"]["measured"] == pytest.approx(3600)
    text = landed * cost_of("ingest").kept * 0.36  # of JSON lines
    assert stages["dedup_exact"]["reads"]["foretold"] == pytest.approx(text)
    assert stages["dedup_exact"]["seconds"]["foretold"] == pytest.approx(text / 1e6 * cost_of("dedup_exact").seconds)
    assert forecast["seconds"]["measured"] == pytest.approx(3 * 3600)
    assert forecast["tokens"]["measured"] == round(forecast["tokens"]["foretold"])
    assert main(["plan", *WORDS, root, "--from", "2"]) == 0
    out = capsys.readouterr().out
    assert "forecast of version 2 from its 8.25 kB of landed files, beside fact" in out
    assert "not known" in out


def test_a_root_without_a_ledger_is_planned_from_by_unit_costs(root: str) -> None:
    (Path(root) / "ledger.sqlite").unlink()
    cost = version_cost(root, version_log.versions(root, RECIPE)[0])
    assert {rate.source for rate in version_basis(cost).stages} == {"unit cost"}
    assert not (Path(root) / "ledger.sqlite").exists()


# --- The command ----------------------------------------------------------------------------------------------------


def test_a_plan_without_a_root_names_every_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path / "nowhere"))
    facts = plan_facts(capsys)
    assert [plan["basis"] for plan in facts["plans"]] == ["measured", "published"]
    assert facts["forecast"] is None
    assert all(plan["source"] for plan in facts["plans"] + facts["references"])
    assert main(["plan", *WORDS, "--core-hour-price", "0.04", "--refine-days", "7"]) == 0
    out = capsys.readouterr().out
    assert "3,172,154 tokens/s of 4 bytes: 12.7 MB/s, 59.2 TB in all" in out
    assert "6.232 PB of content; 0.0095 of all bytes stay" in out
    assert "$0.04 per core-hour: given" in out
    assert "$0.023 per GB-month: Amazon S3 Standard" in out


def test_a_version_without_documents_is_refused(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    version = version_log.versions(root, RECIPE)[0]
    known = {field.name: getattr(version, field.name) for field in fields(version) if field.name != "number"}
    version_log.append(root, known | {"documents": 0})
    assert main(["plan", *WORDS, "--from", DAYS[0], root]) == 78
    assert "version 5 of recipe small has no documents" in capsys.readouterr().err
    assert main(["plan", *WORDS, "--from", "nothing", root]) == 78


def test_tokens_of_a_snapshot_are_estimated_by_the_newest_build(small_root: SmallRoot, tmp_path: Path) -> None:
    small = small_build.copied(small_root, tmp_path)
    versions = version_log.latest_by_snapshot(small.root, RECIPE)
    assert [tokens_of(small.root, version) for version in versions] == [0, 0]
    small_build.build(small)
    tokenized = read_manifest(small.root, version_log.current(small.root, small_build.DATASET).manifests["tokenize"])
    each = tokenized.tokens / tokenized.rows
    assert [tokens_of(small.root, version) for version in versions] == [
        round(version.documents * each) for version in versions
    ]
    assert published_tokens(small.root, RECIPE) == pytest.approx(tokenized.tokens, abs=2)


def test_a_plan_from_the_input_is_that_of_the_tokens_that_it_has(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ("--from", "2", root)):
        capsys.readouterr()
        assert main(["plan", "--input", "3 TB", "--json", *words]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["target"] is facts["loader"] is None
        for at, plan in enumerate(facts["plans"]):
            assert plan["landed"] == pytest.approx(3e12)
            same = plan_facts(capsys, "--target-tokens", str(plan["tokens"]), *words)["plans"][at]
            assert plan == same | {"storage_money": pytest.approx(same["storage_money"] * 14 / 68)}
    assert main(["plan", "--input", "3TB"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 TB of files as they land, refined in 14 days\n\nmeasured")
    assert [line.split()[0] for line in out.splitlines() if "as stored" in line] == ["tokens", "tokens"]


def test_a_root_that_is_named_is_planned_from_by_its_newest_version(
    root: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("refinery_study.plan.LEAST_DOCUMENTS", 5)
    newest = str(version_log.current(root, RECIPE).number)
    size = ["--input", "3TB"]
    for words in (size, WORDS):
        assert plan_facts(capsys, root, of=words) == plan_facts(capsys, "--from", newest, root, of=words)
        assert plan_facts(capsys, root, of=words)["plans"] != plan_facts(capsys, of=words)["plans"]
    monkeypatch.setenv("REFINERY_ROOT", root)
    assert plan_facts(capsys, of=size)["forecast"] is None, "the usual root is not named"
    assert plan_facts(capsys, "--recipe", RECIPE, of=size)["forecast"]["version"] == int(newest)
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "empty", tmp_path / "nowhere"):
        assert main(["plan", "--input", "3TB", str(nothing)]) == RecipeError.exit_code
        assert str(nothing) in capsys.readouterr().err


def test_a_few_documents_are_not_planned_from_unless_there_are_no_more(
    root: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A root was planned from by its last day, a recrawl that had brought two documents."""
    first, newest = version_log.latest_by_snapshot(root, RECIPE)
    assert first.documents > newest.documents
    small = f"too small to plan from: it has {newest.documents} documents, "
    for least in (first.documents, first.documents + 1):
        monkeypatch.setattr("refinery_study.plan.LEAST_DOCUMENTS", least)
        assert main(["plan", "--input", "3TB", root]) == 0
        out, err = capsys.readouterr()
        assert f"snapshot {first.snapshot}, {first.documents} documents: its manifests" in out
        assert f"planned from version {first.number}, as the newest, {newest.number} of" in err
        assert ("too small to plan from" in err) == (least > first.documents)
    assert main(["plan", "--input", "3TB", "--from", str(newest.number), root]) == 0
    out, err = capsys.readouterr()
    assert f"snapshot {newest.snapshot}, {newest.documents} documents: its manifests" in out
    assert small in err
    assert "as the newest" not in err
    assert small in plan_facts(capsys, "--from", str(newest.number), root)["notes"][0]


@pytest.mark.parametrize(
    ("written", "size"), [("3TB", 3e12), ("2.5 gb", 2.5e9), ("1GiB", 2**30), ("3e12", 3e12), ("7kB", 7e3), ("12", 12)]
)
def test_a_size_has_a_number_and_a_unit(written: str, size: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--input", written, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["input"] == size


@pytest.mark.parametrize("wrong", ["", "0", "-3TB", "s3://crawl/2026-11-20", "three TB", "3 parsecs"])
def test_what_is_no_size_is_refused_and_a_folder_is_led_to_lint(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plan", f"--input={wrong}"])
    assert "`refinery lint RECIPE --input URI`" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--target-tokens", "1e9"], [*WORDS[:4]], ["--input", "3TB", "--days", "3"]])
def test_tokens_alone_have_days_and_gpus(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *words]) == 78
    assert f"--target-tokens needs --days and --gpus of the training, such as {EXAMPLE};" in capsys.readouterr().err


def test_the_usage_says_what_tokens_need_and_its_example_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plan"])
    assert "(--target-tokens N --days D --gpus N | --input SIZE)" in capsys.readouterr().err
    assert main(["plan", *EXAMPLE.split(), "--json"]) == 0


@pytest.mark.parametrize("wrong", [["--days", "0"], ["--gpus", "1.5"], ["--target-tokens", "-1"]])
def test_a_target_that_makes_no_sense_is_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plan", *WORDS, *wrong])
