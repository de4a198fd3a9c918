"""`refinery model check`: a scorer that sorts by source is refused, and what a report says is that of the sample."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refinery_models.planted import KINDS
from refinery_models.scorers.check import SUITE
from refinery_models.scorers.texts import read_texts

from pipeline_tasks.errors import ContractError, GateRefused, RecipeError
from pipeline_tasks.gate.suites import load_suite
from pipeline_tasks.scorers.report import FACTS, digest_of_model, read_report
from pipeline_tasks.store.files import digest_of_named
from tests.commands import Refinery
from tests.scorer_samples import by_source, by_text, write_sample


def check(refinery: Refinery, model: str, *more: object) -> tuple[int, dict[str, Any]]:
    done = refinery("model", "check", model, "--label", "__label__good", "--json", *more)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_scorer_that_sorts_by_source_is_refused(tmp_path: Path, refinery: Refinery) -> None:
    sample = write_sample(tmp_path / "sample.jsonl")
    code, report = check(refinery, by_source(tmp_path / "source.bin"), "--sample", sample)
    assert (code, report["outcome"]) == (GateRefused.exit_code, "refuse")
    refused = {failure["column"] for failure in report["failures"] if failure["severity"] == "critical"}
    assert {"source_auc", "flat_source_share"} <= refused
    assert report["facts"]["source_auc"][0] == 1.0
    assert report["facts"]["sources"] == [8, 8, 8, 8]


def test_a_scorer_that_judges_texts_may_decide(tmp_path: Path, refinery: Refinery) -> None:
    sample = write_sample(tmp_path / "sample.jsonl", labels=True)
    model = by_text(tmp_path / "text.bin")
    code, report = check(refinery, model, "--sample", sample)
    assert (code, report["outcome"]) == (0, "warn"), report["failures"]
    assert report["model"] == digest_of_named(model)
    assert report["params"]["label"] == "__label__good"
    facts = report["facts"]
    assert facts["source_auc"][1] < 0.6
    assert facts["auc.words"][0] == 0.5  # no word has a place in this model
    assert facts["auc.listing"][0] > 0.9
    assert facts["rank_correlation"][1] > 0.3
    assert facts["auc.words"][3] == sum(row["size"] for row in report["tables"]["planted"] if row["kind"] == "words")
    assert facts.keys() == FACTS.keys() - {"auc.<kind>"} | {f"auc.{kind}" for kind in KINDS}
    assert {bound["kwargs"]["column"] for bound in load_suite(SUITE)} <= facts.keys()
    steps = report["calibration"]["/en"]
    assert steps["values"] == sorted(steps["values"])
    assert steps["documents"] == 240


def test_the_same_sample_gives_the_same_report_in_any_file(tmp_path: Path, refinery: Refinery) -> None:
    model = by_text(tmp_path / "text.bin")
    lines = Path(write_sample(tmp_path / "sample.jsonl", 60))
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    packed, table = tmp_path / "sample.jsonl.gz", tmp_path / "sample.parquet"
    packed.write_bytes(gzip.compress("\n".join(map(json.dumps, rows[::-1] + rows)).encode()))
    pq.write_table(pa.Table.from_pylist(rows), table)
    found = []
    for at, source in enumerate((lines, packed, table)):
        done = check(refinery, model, "--sample", source, "--output", tmp_path / f"{at}.json")
        found.append({name: value for name, value in done[1].items() if name not in ("report", "sample")})
    assert found[0] == found[1] == found[2]
    assert read_report(str(tmp_path / "0.json")).sample["texts"] == 60


def test_a_report_is_beside_the_model_and_replaces_none(tmp_path: Path, refinery: Refinery) -> None:
    model, sample = by_text(tmp_path / "text.bin"), write_sample(tmp_path / "sample.jsonl", 60)
    _, report = check(refinery, model, "--sample", sample)
    assert report["report"] == f"{model}.check.json"
    assert check(refinery, model, "--sample", sample)[0] == 0
    done = refinery("model", "check", model, "--label", "__label__good", "--sample", sample, "--texts", 30)
    assert done.returncode == RecipeError.exit_code
    assert "--to" in done.stderr
    body = Path(report["report"]).read_bytes()
    Path(report["report"]).write_bytes(body.replace(b'"outcome":"warn"', b'"outcome":"pass"'))
    with pytest.raises(ContractError):
        read_report(report["report"])


def test_the_whole_score_of_a_recipe_is_checked(tmp_path: Path, refinery: Refinery) -> None:
    sample = write_sample(tmp_path / "sample.jsonl", 60)
    named = ("model", "check", "--classifier-of", "web", "--sample", sample, "--json", "--output", tmp_path / "r.json")
    report = json.loads(refinery(*named).stdout)
    assert report["kind"] == "composite"
    assert report["facts"]["auc.words"][0] > 0.9
    assert report["facts"]["auc.repeated"][0] > 0.8


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "MODEL"),
        (("nowhere.bin",), "nowhere.bin"),
        (("--classifier-of", "web:edu"), "'edu'"),
        (("--classifier-of", "nowhere"), "'nowhere'"),
    ],
)
def test_what_is_no_scorer_is_refused(tmp_path: Path, refinery: Refinery, arguments: tuple[str], named: str) -> None:
    sample = write_sample(tmp_path / "sample.jsonl", 20)
    done = refinery("model", "check", *arguments, "--sample", sample, "--output", tmp_path / "r.json")
    assert done.returncode == RecipeError.exit_code
    assert named in done.stderr
    assert not (tmp_path / "r.json").exists()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('{"words": "x"}', ":1 "),
        ('{"text": "a b"}\n["x"]', ":2 "),
        ('{"text": "a b", "label": "good"}', "'good'"),
        ('{"text', ":1 "),
        ("", "no text"),
    ],
)
def test_a_sample_that_cannot_be_read_is_named(tmp_path: Path, content: str, named: str) -> None:
    path = tmp_path / "sample.jsonl"
    path.write_text(content)
    with pytest.raises(RecipeError, match=named):
        read_texts([str(path)], 10)


def test_a_seed_draws_texts_by_their_ids(tmp_path: Path) -> None:
    path = write_sample(tmp_path / "sample.jsonl", 60)
    whole, few, other = (read_texts([path], most, seed)[0] for most, seed in ((60, 1), (20, 1), (20, 2)))
    ids = [table.column("id").to_pylist() for table in (whole, few, other)]
    assert len(ids[0]) == 60
    assert set(ids[1]) < set(ids[0])
    assert ids[1] != ids[2]
    assert ids[1] == sorted(ids[1])


def test_the_digest_of_a_folder_is_that_of_the_store(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True)
    for name in ("b.json", "a.bin", "inner/c", ".hidden"):
        (folder / name).write_text(name)
    assert digest_of_model(str(folder)) == digest_of_named(str(folder))
    assert digest_of_model(str(folder / "a.bin")) == digest_of_named(str(folder / "a.bin"))
