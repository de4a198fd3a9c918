"""A model writes of documents: the same bytes whatever runs it and however often it is killed, and nothing twice."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.run.recipe_faults import recipe_faults
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.run.tasks.row_cache import NEWEST
from pipeline_tasks.stages.rephrase import STAGE
from pipeline_tasks.store import storage
from tests.brought import PROJECT, Site, site
from tests.documents import documents
from tests.refining import commit_parent, rows
from tests.stages import rephrasing
from tests.stages.rephrasing import asked, batches, model

TEXTS = [f"Lake {number} is {number * 7} m deep.\n\nIt has {number + 3} islands." for number in range(40)]


@pytest.fixture(autouse=True)
def brought(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "site") as place:
        rephrasing.install(place)
        yield place


def params(generator: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"generator": generator, "prompts": {"rewrite": {}}, **more}


def rephrased(root: Path, parent: str, written: dict[str, Any], on: tuple[str, str] = ("local", ""), **how: Any) -> Any:
    return refine(RefineRequest(str(root), STAGE.name, written, parent, **how), engine(*on)).manifest


def generated(root: Path, manifest: Any) -> dict[str | None, list[dict[str, Any]]]:
    """Return what was written, by the text of its document."""
    kept = rows(root, manifest)
    return dict(zip(kept["text"].to_pylist(), kept["generated"].to_pylist(), strict=True))


def test_every_document_goes_on_with_what_was_written_of_it(tmp_path: Path) -> None:
    root, noting = tmp_path / "root", model(tmp_path)
    written = params(noting, prompts={"summary": {}, "german": {"prompt": "translation", "language": "de"}})
    manifest = rephrased(root, commit_parent(root, [documents([*TEXTS[:5], "", " \n ", None])]), written)
    kept = rows(root, manifest)
    assert sorted(text or "" for text in kept["text"].to_pylist()) == sorted([*TEXTS[:5], "", " \n ", ""])
    assert manifest.rejected == {}
    of = generated(root, manifest)
    assert [of[""], of[" \n "], of[None]] == [[], [], []]
    first = of[TEXTS[0]]
    assert [each["prompt"] for each in first] == ["german", "summary"]
    assert first[0]["text"].startswith("Lake 0 is 0 m deep. It has 3 islands. ")
    assert {(each["start"], each["end"], each["stop"]) for each in first} == {(0, len(TEXTS[0]), "stop")}
    assert first[0]["model"].startswith("noting@")
    assert first[0]["model_license"] == "CC0-1.0"
    assert first[0]["prompt_digest"] != first[1]["prompt_digest"]
    assert 0 <= first[0]["seed"] < 2**31
    assert kept["n_generated"].to_pylist() == [len(each) for each in kept["generated"].to_pylist()]
    assert manifest.metrics["kept"]["n_generated"]["sum"] == 10


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    """Of another snapshot, with another prompt besides, by other conditions, and where two documents have one text."""
    root, noting = tmp_path / "root", model(tmp_path)
    first = rephrased(root, commit_parent(root, [documents(TEXTS[:20])], "first"), params(noting))
    assert len(asked(tmp_path)) == 20
    second = rephrased(root, commit_parent(root, [documents(TEXTS[10:30] * 2)], "second"), params(noting))
    both = params(noting, prompts={"rewrite": {}, "summary": {}}, where={"chars": {"least": 1}})
    rephrased(root, commit_parent(root, [documents(TEXTS[:20])], "first"), both)
    assert len(asked(tmp_path)) == 20 + 10 + 20
    assert set(asked(tmp_path).values()) == {1}
    shared = generated(root, first).keys() & generated(root, second).keys()
    assert len(shared) == 10
    assert all(generated(root, first)[text] == generated(root, second)[text] for text in shared)


def test_nothing_is_written_twice_after_a_run_of_many_tasks(tmp_path: Path) -> None:
    root, noting, each = tmp_path / "root", model(tmp_path), 4
    texts = [f"Lake {number} is {number * 7} m deep." for number in range((NEWEST + 4) * each)]
    shards = [documents(texts[start : start + each]) for start in range(0, len(texts), each)]
    parent = commit_parent(root, shards)
    rephrased(root, parent, params(noting))
    rephrased(root, parent, params(noting, prompts={"rewrite": {}, "summary": {}}))
    assert len(asked(tmp_path)) == 2 * len(texts)
    assert set(asked(tmp_path).values()) == {1}


def test_only_documents_that_meet_all_conditions_are_read(tmp_path: Path) -> None:
    root, noting = tmp_path / "root", model(tmp_path)
    scores = [number / 40 for number in range(40)]
    topics = ["lakes" if number % 2 else "rivers" for number in range(40)]
    table = documents(TEXTS, score=pa.array(scores), topic=pa.array(topics))
    where = {"score": {"least": 0.5}, "topic": {"any_of": ["lakes"]}}
    parent = commit_parent(root, [table])
    of = generated(root, rephrased(root, parent, params(noting, where=where)))
    chosen = {
        text for text, score, topic in zip(TEXTS, scores, topics, strict=True) if score >= 0.5 and topic == "lakes"
    }
    assert {text for text, each in of.items() if each} == chosen
    # the cache knows requests and not documents: one that was left out is written of when it is asked for
    of = generated(root, rephrased(root, parent, params(noting)))
    assert all(of.values())
    assert set(asked(tmp_path).values()) == {1}
    with pytest.raises(RecipeError, match=r"rephrase\.where: the documents have no column 'stars'"):
        rephrased(root, parent, params(noting, where={"stars": {"least": 1}}))


def test_a_request_that_the_model_fails_on_costs_itself_alone(tmp_path: Path) -> None:
    root, noting = tmp_path / "root", model(tmp_path)
    texts = [*TEXTS[:6], "BREAK this", "REFUSE this", "one two three four five six seven"]
    parent = commit_parent(root, [documents(texts)])
    written = params(noting, sampling={"max_tokens": 20})
    manifest = rephrased(root, parent, {**written, "sampling": {"max_tokens": 6}})
    of = {text: each[0] for text, each in generated(root, manifest).items()}
    assert (of["BREAK this"]["text"], of["BREAK this"]["stop"]) == (None, "error")
    assert of["BREAK this"]["detail"].startswith("ValueError in brought_noting")
    assert (of["REFUSE this"]["stop"], of["REFUSE this"]["detail"]) == ("refused", "content_filter")
    assert of["one two three four five six seven"]["stop"] == "length"
    assert manifest.rejected == {}
    assert sum(each["text"] is not None for each in of.values()) == 7
    profile = manifest.metrics["kept"]
    assert profile["generated_failed"]["bins"] == {"0": 7, "100": 2}
    assert profile["generated_cut"]["count"] == 9


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_batches_and_neighbors_decide_nothing(temperature: float, tmp_path: Path) -> None:
    noting = model(tmp_path)
    written = params(noting, sampling={"temperature": temperature}, seed=3 if temperature else 0)
    found = []
    for at, (batch, tables) in enumerate([(4096, [TEXTS]), (1, [TEXTS]), (7, [TEXTS[start::3] for start in range(3)])]):
        root = tmp_path / f"root-{at}"
        parent = commit_parent(root, [documents(texts) for texts in tables])
        found.append(generated(root, rephrased(root, parent, written, batch_rows=batch)))
    assert found[0] == found[1] == found[2]
    other = rephrased(
        tmp_path / "root-0", commit_parent(tmp_path / "root-0", [documents(TEXTS)]), {**written, "seed": 4}
    )
    is_same = [each["text"] for [each] in generated(tmp_path / "root-0", other).values()] == [
        each["text"] for [each] in found[0].values()
    ]
    assert is_same == (temperature == 0)


def test_braces_are_braces(tmp_path: Path) -> None:
    root, noting = tmp_path / "root", model(tmp_path)
    (tmp_path / "own.md").write_text("---\nsystem: S\n---\nAs {json}:\n\n-----\n{text}\n-----\n")
    written = params(noting, prompts={"own": {"file": str(tmp_path / "own.md")}})
    manifest = rephrased(root, commit_parent(root, [documents(["a {text} {0} {{b}}"])]), written)
    [[each]] = generated(root, manifest).values()
    assert each["text"].startswith("a {text} {0} {{b}} ")
    assert str(tmp_path) not in str(manifest.params)


def test_long_documents_are_read_in_windows(tmp_path: Path) -> None:
    root, noting = tmp_path / "root", model(tmp_path)
    text = "\n\n".join(f"Paragraph {number} of a long text. It has two sentences." for number in range(60))
    manifest = rephrased(root, commit_parent(root, [documents([text])]), params(noting, window=400))
    [written] = generated(root, manifest).values()
    stretches = [text[each["start"] : each["end"]] for each in written]
    assert "\n\n".join(stretches) == text
    assert max(map(len, stretches)) <= 400
    assert len(written) > 8
    assert len({each["seed"] for each in written}) == len(written)


# --- Kills --------------------------------------------------------------------------------------------------------------


def test_a_server_that_goes_costs_the_batch_in_hand(tmp_path: Path) -> None:
    root, noting = tmp_path / "root", model(tmp_path, batch=4, gone="Lake 20 ")
    parent = commit_parent(root, [documents(TEXTS)])
    with pytest.raises(JobLost, match="the server is gone"):
        rephrased(root, parent, params(noting))
    assert 0 < len(asked(tmp_path)) < 40
    (tmp_path / "asked.back").touch()
    manifest = rephrased(root, parent, params(noting))
    assert len(asked(tmp_path)) == 40
    assert asked(tmp_path).total() <= 40 + 4
    assert not [entry.path for entry in storage.connect(str(root)).list("cache") if "/parts-" in entry.path]
    calm = rephrased(tmp_path / "calm", commit_parent(tmp_path / "calm", [documents(TEXTS)]), params(noting))
    assert manifest.shards == calm.shards


CHILD = """
import json
import sys
sys.path.append(sys.argv[1])
from pipeline_tasks.engines.choose import engine
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
root, parent, params = sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
print("starts", flush=True)
refine(RefineRequest(root, "rephrase", params, parent), engine("local"))
"""


@pytest.mark.slow
def test_sixteen_kills_cost_a_batch_each(tmp_path: Path, brought: Site) -> None:
    """A kill behind so many batches, as the generator's own log says, and at a random moment of the next one.

    Nothing else kills a process that has a part half written: the price is 16 starts of one (a minute).
    """
    root, batch = tmp_path / "root", 4
    noting = model(tmp_path, batch=batch, pause=0.4)
    texts = [f"Page {number} names {number * 11} things.\n\nIt has {number + 3} parts." for number in range(160)]
    parent = commit_parent(root, [documents(texts[:100]), documents(texts[100:])])
    written = params(noting, sampling={"temperature": 0.8})
    draw = random.Random(5)
    kills = 0
    for target in sorted(draw.sample(range(2, 38), 16)):
        child = Popen([sys.executable, "-c", CHILD, str(brought.folder), str(root), parent, json.dumps(written)])
        before = batches(tmp_path)
        while child.poll() is None and batches(tmp_path) < max(target, before + 1):
            time.sleep(0.002)
        time.sleep(draw.random() * 0.4)
        kills += child.poll() is None
        child.kill()
        child.wait()
    manifest = rephrased(root, parent, written)
    assert kills == 16
    assert len(asked(tmp_path)) == 160
    # a batch in hand each, and a second one where the kill met rows that waited for a part, 20 ms or a little more
    assert asked(tmp_path).total() <= 160 + kills * batch + 2 * batch
    calm = tmp_path / "calm"
    other = rephrased(calm, commit_parent(calm, [documents(texts[:100]), documents(texts[100:])]), written)
    assert manifest.shards == other.shards


ACTORS = """
import json, sys
from pipeline_tasks.engines.choose import engine
from pipeline_tasks.recipe import Resources
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.run.tasks.row_cache import NEWEST
params = json.loads(sys.argv[2])
for actors, (root, parent) in zip((1, 4), json.loads(sys.argv[1])):
    how = {"resources": Resources(actors=actors), "batch_rows": 7}
    refined = refine(RefineRequest(root, "rephrase", params, parent, **how), engine("ray", "local"))
    print(json.dumps([shard.digest for shard in refined.manifest.shards]))
"""
"""A driver of its own: its workers find the generator by the path that it gives them."""


@pytest.mark.slow
def test_one_actor_and_four_write_the_same(tmp_path: Path, brought: Site) -> None:
    noting = model(tmp_path, batch=3)
    tables = [documents(TEXTS[start::4]) for start in range(4)]
    written = params(noting, sampling={"temperature": 0.8})
    calm = rephrased(tmp_path / "calm", commit_parent(tmp_path / "calm", tables), written)
    roots = [(str(tmp_path / name), commit_parent(tmp_path / name, tables)) for name in ("one", "four")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(brought.folder), str(PROJECT)])}
    done = subprocess.run(
        [sys.executable, "-c", ACTORS, json.dumps(roots), json.dumps(written)],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    digests = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"[")]
    assert digests == [[shard.digest for shard in calm.shards]] * 2


# --- Hours --------------------------------------------------------------------------------------------------------------


def test_a_model_stops_at_its_hours_and_goes_on_with_more(tmp_path: Path) -> None:
    """Over tries and shards: the second try with as many hours stops at once."""
    root, noting = tmp_path / "root", model(tmp_path, batch=2, pause=0.1)
    parent = commit_parent(root, [documents(TEXTS[:10]), documents(TEXTS[10:20])])
    second = 1 / 3600
    with pytest.raises(RecipeError, match=r"of the 0\.0002 hours.*`run: model_hours`.*goes on"):
        rephrased(root, parent, params(noting), model_hours=0.72 * second)
    stopped = len(asked(tmp_path))
    assert 4 <= stopped < 20
    with pytest.raises(RecipeError, match="`run: model_hours`"):
        rephrased(root, parent, params(noting), model_hours=0.72 * second)
    assert len(asked(tmp_path)) == stopped
    manifest = rephrased(root, parent, params(noting), model_hours=60 * second)
    assert manifest.rows == 20
    assert len(asked(tmp_path)) == 20
    assert asked(tmp_path).total() <= 20 + 2
    other = commit_parent(root, [documents(TEXTS[20:24])], "other")
    assert rephrased(root, other, params(noting), model_hours=60 * second).rows == 4


def test_hours_for_a_stage_without_a_model_are_a_fault() -> None:
    stages: dict[str, Any] = {"ingest": {}, "extract": {}, "filter_language": {}}
    recipe = parse_recipe({"name": "own", "stages": stages, "run": {"model_hours": {"extract": 2}}}, "own.yaml")
    assert [fault.where for fault in recipe_faults(recipe) if "`run: model_hours`" in fault.message] == ["extract"]
