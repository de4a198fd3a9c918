"""A request is checked before anything is read: its span, the secret that it needs, and the files that it names."""

import hashlib
import re
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import RecipeError, SchemaBroken
from pipeline_tasks.run.plan import numbered, plan, resources_of, secret_variable
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.schema import PAGE
from tests.refining import commit_parent
from tests.toys import table

KEY = "REFINERY_PII_KEY"


@pytest.mark.parametrize("span", [(0, 0), (0, 3), (2, 2)])
def test_a_span_may_be_empty(span: tuple[int, int]) -> None:
    assert RefineRequest("/root", "extract", {}, "p", span=span).span == span


def test_a_span_that_runs_backwards_is_refused() -> None:
    with pytest.raises(RecipeError, match=re.escape("[3, 2]")):
        RefineRequest("/root", "extract", {}, "p", span=(3, 2))


def test_the_variable_of_a_secret_is_that_of_params_that_need_one() -> None:
    requests = [
        RefineRequest("/root", stage, params, "p")
        for stage, params in (("scrub_pii", {"action": "pseudonymize"}), ("scrub_pii", {}), ("extract", {}))
    ]
    assert [secret_variable(request) for request in requests] == [KEY, "", ""]


@pytest.mark.usefixtures("toys")
def test_a_span_has_its_shards_and_a_whole_stage_all(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [table(0, 3), table(3, 3), table(6, 3)])
    planned = plan(RefineRequest(str(tmp_path), "toy_map", {}, parent))
    assert planned.inputs(None) == planned.parent.shards
    assert planned.inputs((1, 3)) == planned.parent.shards[1:3]
    assert planned.path == f"toy_map/{planned.fingerprint}/manifest.json"


@pytest.mark.parametrize("stage", ["filter_url", "filter_language"])
def test_a_stage_of_documents_is_refused_where_there_are_none_yet(stage: str, tmp_path: Path) -> None:
    """It read what pages have, and ended with columns that it had promised: the message blamed the stage."""
    parent = commit_parent(tmp_path, [pa.Table.from_pylist([], PAGE)])
    with pytest.raises(
        SchemaBroken, match=rf"{stage} needs columns \['id', 'title', 'chars'\] .*writes them before it"
    ):
        plan(RefineRequest(str(tmp_path), stage, {}, parent))
    plan(RefineRequest(str(tmp_path), "extract", {}, parent))


def test_files_that_params_name_have_absolute_paths_and_their_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.txt").write_bytes(b"bad.example\n")
    monkeypatch.chdir(tmp_path)
    card = stage_card("filter_url")
    params, digests = resources_of(card, bind(card, {"domains": "bad.txt"}))
    assert params.domains == str(tmp_path / "bad.txt")
    assert digests[str(tmp_path / "bad.txt")] == hashlib.sha256(b"bad.example\n").hexdigest()
    with pytest.raises(RecipeError, match=re.escape(str(tmp_path / "none.txt"))):
        resources_of(card, bind(card, {"domains": "none.txt"}))
    assert len(resources_of(card, bind(card, {}))[1]) == len(digests) - 1


def test_digests_are_numbered_in_their_order_and_not_in_that_of_their_files() -> None:
    assert numbered(["b", "a", "c"]) == numbered(["c", "b", "a"]) == {"0": "a", "1": "b", "2": "c"}
