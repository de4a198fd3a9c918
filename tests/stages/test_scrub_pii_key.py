"""The key of pseudonyms: it decides the fingerprint, and stands nowhere."""

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.datasets.published_shards import named_files
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.run.tasks.task import kernel_name
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.sealed import canonical
from pipeline_tasks.stage import Secret
from pipeline_tasks.stages.scrub_pii import KEY_VARIABLE, STAGE
from tests import chain
from tests.refining import commit_parent, refined, rows

KEY = "9f2c7a51d0e84b36-never-written"
PSEUDONYMS = {"action": "pseudonymize"}
WORDS = [
    "the",
    "river",
    "runs",
    "under",
    "old",
    "stone",
    "bridges",
    "while",
    "people",
    "walk",
    "slowly",
    "home",
    "from",
    "markets",
]


def parent(root: Path) -> str:
    columns = {name: pa.nulls(1, DOCUMENT.field(name).type) for name in DOCUMENT.names}
    text = "write to jane@example.org or call 212-736-5000"
    columns |= {"text": pa.array([text], pa.large_string()), "chars": pa.array([len(text)], pa.int64())}
    return commit_parent(root, [pa.table(columns)])


def holders(folder: Path, secret: str) -> list[str]:
    """Return the files below `folder` whose bytes, or whose values if they are Parquet, contain `secret`."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret.encode() in content(path)]


def content(path: Path) -> bytes:
    body = path.read_bytes()
    return body + str(pq.read_table(path).to_pydict()).encode() if path.suffix == ".parquet" else body


def test_another_key_is_another_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = parent(tmp_path)
    paths = []
    for key in (KEY, "another key of many characters", KEY):
        monkeypatch.setenv(KEY_VARIABLE, key)
        path, manifest = refined(tmp_path, "scrub_pii", given, PSEUDONYMS)
        paths.append(path)
        assert "jane" not in rows(tmp_path, manifest)["text"][0].as_py()
    assert paths[0] == paths[2] != paths[1]
    assert not holders(tmp_path, KEY)


def test_redaction_does_not_depend_on_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = parent(tmp_path)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with_key, _ = refined(tmp_path, "scrub_pii", given)
    monkeypatch.delenv(KEY_VARIABLE)
    assert refined(tmp_path, "scrub_pii", given)[0] == with_key


@pytest.mark.parametrize("key", ["", "too short"])
def test_no_key_and_a_short_key_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(RecipeError, match=f"{KEY_VARIABLE}.*refinery_pii") as refusal:
        refined(tmp_path, "scrub_pii", parent(tmp_path), PSEUDONYMS)
    assert not key or key not in str(refusal.value)


@pytest.mark.parametrize("written", [KEY, {"value": KEY}, {"check": KEY}, [KEY]])
def test_a_key_in_a_recipe_is_refused_and_not_repeated(written: Any) -> None:
    stages = {"scrub_pii": {**PSEUDONYMS, "key": written}}
    with pytest.raises(RecipeError, match=f"scrub_pii: key .*{KEY_VARIABLE}") as refusal:
        parse_recipe({"stages": {"ingest": {}, "extract": {}, **stages}}, "r.yaml")
    assert KEY not in str(refusal.value)


def test_no_text_form_shows_a_secret() -> None:
    from functools import partial

    from pipeline_tasks.stages.scrub_pii import Params, scrub

    secret = Secret.of(KEY)
    params = Params(action="pseudonymize", key=secret)
    kernel = partial(scrub, params=params)
    shown = [repr(secret), str(params), f"{kernel}", kernel_name(kernel), canonical(params).decode(), repr([kernel])]
    assert not [text for text in shown if KEY in text]
    assert secret.check in canonical(params).decode()
    assert bind(STAGE, {}).key == Secret()


@pytest.mark.slow
def test_a_finished_root_its_ledger_and_its_logs_are_without_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """And without the addresses of its documents: in texts, titles, URLs, lineage and report."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setenv("REFINERY_LEDGER", f"sqlite:///{tmp_path}/out/ledger.db")
    caplog.set_level(logging.INFO)
    landing, root = tmp_path / "landing" / "2026-11-20", tmp_path / "out" / "root"
    landing.mkdir(parents=True)
    duplicate = page(0) | {"url": "https://example.org/u/jane%40example.org/again"}
    lines = (json.dumps(each) for each in [*map(page, range(400)), duplicate])
    (landing / "pages.jsonl").write_text("\n".join(lines))
    recipe = tmp_path / "pseudonyms.yaml"
    recipe.write_text(
        "stages:\n  ingest: {}\n  extract: {min_chars: 10}\n  dedup_exact: {}\n  scrub_pii: {action: pseudonymize}\n"
    )
    done = chain.refined(str(root), str(landing), chain.How(recipe=str(recipe)))
    assert done.version.documents == 400
    built = chain.built(str(root), chain.build_of("pseudonyms", {"train": {"vocab_size": 400, "min_bytes": 1000}}, 256))
    assert not holders(tmp_path / "out", KEY)
    logged = capfd.readouterr()
    assert KEY not in caplog.text + logged.out + logged.err
    published = [root / file.path for file in named_files(str(root), built)]
    urls = [url for path in published if path.suffix == ".parquet" for url in pq.read_table(path)["url"].to_pylist()]
    assert {url.rpartition("/")[0] for url in urls} == {"https://example.org/u/<EMAIL>"}
    assert not holders(root / "publish", "jane")
    assert not holders(root / done.version.manifests["scrub_pii"].partition("/manifest")[0] / "data", "jane")


def page(number: int) -> dict[str, str]:
    words = [WORDS[(number * step + step * step) % len(WORDS)] + str(number % 7) for step in range(1, 120)]
    return {
        "url": f"https://example.org/u/jane%40example.org/{number}",
        "title": f"Page {number} of jane@example.org",
        "text": f"{' '.join(words)}. Write to jane{number}@example.org, 212-736-{5000 + number}.",
    }
