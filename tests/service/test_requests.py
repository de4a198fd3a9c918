"""Every field of every request is checked by type and range: a wrong one is one paragraph, never a traceback."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.recipe import trial_of
from pipeline_tasks.service.handle import main
from pipeline_tasks.service.requests.stages import LandRequest
from pipeline_tasks.service.requests.wire import decode, encode
from pipeline_tasks.service.verbs import verbs
from tests.chain import reply_type

ABOUT = {"recipe": "web", "snapshot": "d1", "run_id": "r"}

VALID: Mapping[str, dict[str, Any]] = {
    "preflight": {"landing": "crawl", "steps": [{"stage": "ingest", "params": {}, "engine": "local"}], **ABOUT},
    "land": {"input": "crawl", **ABOUT},
    "compose": {"recipe": "corpus", "versions": {"recipe": "web"}},
    "history": ABOUT,
    "spans": {"parent": "land/a/manifest.json", "stage": "ingest", "partitions": 2, **ABOUT},
    "refine": {"stage": "ingest", "params": {}, "parent": "land/a/manifest.json", "span": [0, 1], **ABOUT},
    "quarantine": {"stage": {"root": "r", "stage": "ingest", "params": {}, "parent": "a", "span": [0, 1]}},
    "seal": {"stage": {"root": "r", "stage": "ingest", "params": {}, "parent": "a"}, "spans": [[0, 1]], "wall": 1.5},
    "record": {"stage": {"root": "r", "stage": "ingest", "params": {}, "parent": "a"}, "manifest": "b", "cpu": 1.5},
    "judge": {"manifest": "ingest/a/manifest.json", "bounds": {}, **ABOUT},
    "publish": {"manifests": {"land": "land/a/manifest.json"}, **ABOUT},
    "export": {"version": 1, "exports": {"parquet": 0}, "recipe": "corpus"},
    "register": {"version": 1, "catalog": "iceberg:lake", "recipe": "corpus"},
    "judge_snapshot": {
        "manifests": {"land": "land/a/manifest.json", "ingest": "ingest/a/manifest.json"},
        "trailing": [{"ingest": "ingest/b/manifest.json"}],
        "bounds": {},
        **ABOUT,
    },
    "judge_recipe": {
        "manifest": "land/a/manifest.json",
        "steps": [{"stage": "ingest", "params": {}, "engine": "local"}],
        "requires": {"verdict": "not-worse", "beside": "web"},
        **ABOUT,
    },
    "index": ABOUT,
    "compact": {},
    "verify": {"full": True},
    "vacuum": {"grace": 1, "expire": 0, "limit": 0.5},
    "retention": {"policy": "default"},
    "train_model": {"name": "quality", "positives": ["good.jsonl"], "negatives": ["@web:d1"], "texts": 100},
    "check_model": {"name": "quality", "model": "models/quality/a/model.bin", "label": "high", "sample": ["r@web:d1"]},
    "plan_ablation": {"folder": "to", "held_out": ["held-out.jsonl"], "recipes": ["web", "web_en"], "inputs": ["day"]},
    "forecast_ablation": {"folder": "to"},
    "judge_ablation": {"folder": "to"},
    "publish_model": {"name": "quality", "model": "models/a", "training": "models/b.json", "check": "models/c.json"},
}

REQUESTS = {verb: known.request for verb, known in verbs().items()}
"""The type of the request of each verb that the core or an extension answers."""

OF_A_STAGE = ("seal", "quarantine", "record")
"""Verbs whose root is that of the stage's request."""

NEVER = [-1, math.nan, math.inf, -math.inf, 10**400, "\0", "\ud800", ["x", [1]], {"x": {"y": None}}, "x" * 5_000_000]
"""Values that no field admits, whatever its type."""

EXTRA: Mapping[str, list[Any]] = {
    "root": ["", "s3://", "s3:///prefix", "s3:bucket", 7, None, "a\nb"],
    "input": ["", "s3://", 7, None],
    "recipe": ["../../x", "a/b", "..", "a b", 7, None],
    "snapshot": ["../../x", "a/b", "..", ".", 7, None],
    "parent": ["", "/etc/passwd", "../x", "a/../../x", 7],
    "manifest": ["", "/etc/passwd", "../x"],
    "previous": ["/etc/passwd", "../x", None, 7],
    "manifests": [{"land": "../x"}, [], None, "x"],
    "verdicts": [{"land": "/x"}, [], None],
    "history": [["../x"], "x", [7]],
    "partitions": [-1, 1.5, True, 10**9, "2"],
    "grace": ["7", True, None],
    "limit": [1.5, "x", True],
    "span": [[1, 0], [0], [0, 1, 2], [-1, 1], "01"],
    "spans": [[[0, 1, 2]], [[1]], "x", None],
    "batch_rows": [0, 1.5, 10**9, True],
    "params": [[], None, "x"],
    "bounds": [[], None, "x"],
    "delete": ["yes", 1, None],
    "stage": ["", "../x", None],
    "error_budget": [{"share": 7}, {"rows": -1}, [], 3],
    "wall": ["x", True, None],
}


def cases() -> list[tuple[str, str, Any]]:
    """Every verb with each of its fields and every value that the field must not have."""
    return [
        (verb, field.name, value)
        for verb, kind in REQUESTS.items()
        for field in fields(kind)
        for value in [*NEVER, *EXTRA.get(field.name, [])]
        if not (field.name in ("params", "bounds") and isinstance(value, dict))
        and not (field.name in ("manifests", "verdicts") and value == {"x": {}})
    ]


def request(verb: str, root: str) -> dict[str, Any]:
    return {"verb": verb, **({} if verb in OF_A_STAGE else {"root": root}), **VALID[verb]}


@pytest.mark.parametrize("verb", REQUESTS)
def test_the_work_of_a_verb_takes_its_request_and_returns_its_reply(verb: str) -> None:
    """The type checker follows a reply from `send` to its reader; that the work returns it is checked here."""
    kind, types = REQUESTS[verb], get_type_hints(verbs()[verb].load_work())
    assert kind.verb == verb
    assert (types["request"], types["return"]) == (kind, reply_type(kind))


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_valid_request_is_read(verb: str) -> None:
    assert type(decode(request(verb, "root"))) is REQUESTS[verb]


def test_no_field_of_any_request_may_be_senseless() -> None:
    refusals = [(verb, name, refusal_of({**request(verb, "root"), name: value})) for verb, name, value in cases()]
    assert {(verb, name) for verb, name, _ in refusals} == {
        (verb, field.name) for verb, kind in REQUESTS.items() for field in fields(kind)
    }
    assert [(verb, name) for verb, name, refusal in refusals if name not in refusal or len(refusal) >= 700] == []


def refusal_of(raw: dict[str, Any]) -> str:
    """Return why a request is refused, "" if it is not."""
    try:
        decode(raw)
    except RecipeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_request_about_nothing_is_one_paragraph(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no root")
    codes = {}
    for root in ("file", "nothing"):
        path, raw = tmp_path / "request.json", request(verb, str(tmp_path / root))
        if verb in OF_A_STAGE:
            raw["stage"] = {**raw["stage"], "root": str(tmp_path / root)}
        path.write_text(json.dumps(raw))
        codes[root] = main([str(path)])
        lines = capsys.readouterr().err.splitlines()
        refused = ["RecipeError", "NothingLanded"] if codes[root] else []
        assert [line.partition(": ")[0] in refused for line in lines] == [True] * bool(codes[root])
    idle = codes["nothing"] == 0 and verb in ("compact", "vacuum", "verify")
    assert codes == {"file": RecipeError.exit_code, "nothing": 0 if idle else RecipeError.exit_code}


def test_a_history_of_no_root_is_not_the_first_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for root in ("", "s3://", str(tmp_path / "nothing")):
        (tmp_path / "request.json").write_text(json.dumps({"verb": "history", "root": root, **ABOUT}))
        assert main([str(tmp_path / "request.json")]) == RecipeError.exit_code
        assert "RecipeError" in capsys.readouterr().err


@pytest.mark.parametrize("reply", [7, None, "\0", "s3://", "x" * 5_000_000, "FILE/reply.json", "FOLDER"])
def test_a_reply_that_cannot_be_stored_is_one_paragraph(
    reply: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    if isinstance(reply, str):
        reply = reply.replace("FILE", str(tmp_path / "file")).replace("FOLDER", str(tmp_path / "folder"))
    raw = {"verb": "history", "root": str(tmp_path), **ABOUT, "reply": reply}
    (tmp_path / "request.json").write_text(json.dumps(raw))
    assert main([str(tmp_path / "request.json")]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "reply" in line


@pytest.mark.parametrize("uri", ["x" * 100_000, "/nothing/at/all.json", "\0", "/", "", "."])
def test_a_request_file_that_cannot_be_read_is_one_paragraph(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([uri]) in (RecipeError.exit_code, ContractError.exit_code)
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) < 600


def test_trials_of_a_recipe_with_the_longest_name_are_no_wrong_word() -> None:
    land = LandRequest(root="/root", input="/crawl", recipe=trial_of("n" * 64), snapshot="2026-11-20", sample=0.5)
    assert decode(encode(land)) == land
    with pytest.raises(RecipeError, match="request to land: recipe "):
        decode({**encode(land), "recipe": "n" * 65})
