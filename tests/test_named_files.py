"""Every file that a recipe can name, damaged in every way: one refusal that names it, and the way out."""

import json
import os
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.running import RunOptions, run
from pipeline_tasks.inspect.lint import lint
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.recipe_faults import recipe_faults
from pipeline_tasks.stages import NAMES
from pipeline_tasks.text.words.language_model import dump_model
from tests.fasttext_file import write_model
from tests.text.words.test_language_model import model

NOISE = random.Random(7).randbytes(1 << 16)

DOMAINS = b"example.org\nexample.net\n" * 100

ITEMS = b"".join(
    json.dumps({"question": f"Which river is number {at} of the north?"}).encode() + b"\n" for at in range(50)
)

LEXICON = b"insult 1: daft\nnone: daffodil*\n" * 50

TOKENIZER: Mapping[str, Any] = {
    "version": "1.0",
    "added_tokens": [],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {"<eos>": 0, "[UNK]": 1, "Größe": 2}, "unk_token": "[UNK]"},
}


def tokenizer(**vocabulary: int) -> bytes:
    words = TOKENIZER["model"]["vocab"] | vocabulary
    return json.dumps(TOKENIZER | {"model": TOKENIZER["model"] | {"vocab": words}}, ensure_ascii=False).encode()


def fasttext_body(folder: Path) -> bytes:
    return Path(write_model(folder / "written.bin", {"otter": "en", "Dachs": "de"})).read_bytes()


def language_model_body(_: Path) -> bytes:
    return dump_model(model())


Named = tuple[str, dict[str, Any], str, Callable[[Path], bytes]]

UP_TO_LANGUAGE: Mapping[str, Any] = {"ingest": {}, "extract": {}, "filter_language": {}}

FILES: Mapping[str, Named] = {
    "filter_language: model": ("filter_language", {"model": "?"}, "bin", fasttext_body),
    "filter_url: domains": ("filter_url", {"domains": "?"}, "txt", lambda _: DOMAINS),
    "filter_url: urls": ("filter_url", {"urls": "?"}, "txt", lambda _: DOMAINS),
    "filter_url: hard_words": ("filter_url", {"hard_words": "?"}, "txt", lambda _: DOMAINS),
    "filter_url: soft_words": ("filter_url", {"soft_words": "?"}, "txt", lambda _: DOMAINS),
    "filter_url: subwords": ("filter_url", {"subwords": "?"}, "txt", lambda _: DOMAINS),
    "filter_quality: packs": (
        "filter_quality",
        {"packs": "?"},
        "yaml",
        lambda _: b"de: {gopher_quality: {min_doc_words: 3}}\n",
    ),
    "c4_badwords: bad_words": (
        "filter_quality",
        {"profiles": ["c4_badwords"], "c4_badwords": {"bad_words": {"en": "?"}}},
        "txt",
        lambda _: DOMAINS,
    ),
    "seeds: toxic_words": (
        "filter_quality",
        {"profiles": ["seeds"], "seeds": {"toxic_words": "?"}},
        "txt",
        lambda _: DOMAINS,
    ),
    "filter_toxicity: lexicons": ("filter_toxicity", {"lexicons": {"en": "?"}}, "txt", lambda _: LEXICON),
    "score_quality: classifiers": (
        "score_quality",
        {"classifiers": {"clean": {"model": "?", "label": "__label__en"}}, "weights": {"clean": 1}},
        "bin",
        fasttext_body,
    ),
    "score_quality: language_models": ("score_quality", {"language_models": {"en": "?"}}, "lm", language_model_body),
    "decontaminate: benchmarks": ("decontaminate", {"benchmarks": {"quiz": "?"}}, "jsonl", lambda _: ITEMS),
    "tokenize: tokenizer": ("tokenize", {"tokenizer": "?"}, "json", lambda _: tokenizer()),
}
"""The stage that names a file, its params with `?` for the path, the suffix of the file, and what is in it when whole."""

HUGE = (1 << 40) - 1

DAMAGES: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "white space": lambda _: b"\n \n",
    "first byte": lambda body: body[:1],
    "latin-1": lambda _: '{"question": "Größe"}\nGröße: {}\n'.encode("latin-1"),
    "UTF-16": lambda _: '{"question": "Where?"}\nde: {}\n'.encode("utf-16"),
    "UTF-16 without a mark": lambda _: '{"question": "Where?"}\nde: {}\n'.encode("utf-16-le"),
    "one huge line": lambda _: b"a" * ((1 << 24) + 2),
    "random bytes": lambda _: NOISE,
    "zeros": lambda _: bytes(1 << 16),
}

CUT = ("filter_language: model", "score_quality: classifiers", "score_quality: language_models", "tokenize: tokenizer")
"""The files that know their own length; the first lines of a list are a list."""


def written(folder: Path, kind: str, path: Path) -> str:
    """Write a recipe that names `path` as a file of a kind; return the recipe's path."""
    stage, params, _, _ = FILES[kind]
    named = json.loads(json.dumps(params).replace("?", str(path)))
    recipe = folder / "mine.yaml"
    recipe.write_text(yaml.safe_dump(_recipe(stage, named), sort_keys=False))
    return str(recipe)


def _recipe(stage: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe with a stage: one that refines, or of a stage of tokens one that builds."""
    if stage == "tokenize":
        stages = {stage: params, "select": {}, "shuffle": {}, "pack": {}}
        return {"versions": {"recipe": "web"}, "stages": stages}
    stages = {**UP_TO_LANGUAGE, stage: params}
    return {"stages": {name: stages[name] for name in NAMES if name in stages}}


def refusal(recipe: str, path: Path) -> str:
    """Return the refusal of a recipe: lint's only fault, and the same at the start of a run."""
    (fault,) = [finding for finding in lint(recipe) if finding.fault]
    assert fault.message in [refused.message for refused in recipe_faults(load_recipe(recipe))]
    assert str(path) in fault.message
    assert len(fault.message) < 1000 + len(str(path))
    return fault.message


@pytest.mark.parametrize("kind", FILES)
def test_a_whole_file_is_believed(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"named.{FILES[kind][2]}"
    path.write_bytes(FILES[kind][3](tmp_path))
    recipe = written(tmp_path, kind, path)
    assert [finding for finding in lint(recipe) if finding.fault] == []
    assert list(recipe_faults(load_recipe(recipe))) == []


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_file_is_refused_by_its_path(kind: str, damage: str, tmp_path: Path) -> None:
    path = tmp_path / f"named.{FILES[kind][2]}"
    path.write_bytes(DAMAGES[damage](FILES[kind][3](tmp_path)))
    if damage == "first byte" and kind not in CUT and kind != "decontaminate: benchmarks" and "packs" not in kind:
        path.write_bytes(b"#")
    refusal(written(tmp_path, kind, path), path)


@pytest.mark.parametrize("kind", CUT)
def test_a_file_that_is_cut_anywhere_is_refused(kind: str, tmp_path: Path) -> None:
    path, body = tmp_path / f"named.{FILES[kind][2]}", FILES[kind][3](tmp_path)
    for share in range(1, 16):
        path.write_bytes(body[: len(body) * share // 16])
        refusal(written(tmp_path, kind, path), path)


@pytest.mark.parametrize("kind", FILES)
def test_what_is_no_file_is_refused_by_its_path(kind: str, tmp_path: Path) -> None:
    suffix = FILES[kind][2]
    (tmp_path / f"folder.{suffix}").mkdir()
    os.mkfifo(tmp_path / f"pipe.{suffix}")
    (tmp_path / f"dangling.{suffix}").symlink_to(tmp_path / "nothing")
    (tmp_path / f"device.{suffix}").symlink_to("/dev/zero")
    for name in ("missing", "folder", "pipe", "dangling", "device", "x" * 300):
        path = tmp_path / f"{name}.{suffix}"
        assert "correct" in refusal(written(tmp_path, kind, path), path)


@pytest.mark.parametrize("number", [-1, 1 << 24, 3_000_000_000, HUGE])
def test_a_tokenizer_with_an_id_out_of_range_is_refused(number: int, tmp_path: Path) -> None:
    """The library counts up to the largest id, for hours or until the memory is full."""
    path = tmp_path / "named.json"
    path.write_bytes(tokenizer(otter=number))
    assert "of a token is not a number from 0" in refusal(written(tmp_path, "tokenize: tokenizer", path), path)


def test_a_tokenizer_that_cannot_encode_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "named.json"
    path.write_bytes(tokenizer().replace(b'"[UNK]": 1', b'"[UN]": 1'))
    assert "Missing [UNK] token" in refusal(written(tmp_path, "tokenize: tokenizer", path), path)


@pytest.mark.parametrize("snapshot", ["../x", "a/b", "..", "a\nb", "x" * 201])
def test_a_run_starts_nothing_with_a_snapshot_of_a_wrong_name(snapshot: str, tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    options = RunOptions(str(tmp_path / "landing"), str(tmp_path / "root"), snapshot=snapshot, recipe="web_en")
    with pytest.raises(RecipeError, match=re.escape("--snapshot ") + ".*" + re.escape(repr(snapshot)[:60])):
        run(options)


def test_a_run_starts_nothing_with_a_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "named.bin"
    path.write_bytes(NOISE)
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.jsonl").write_text('{"text": "an otter"}\n')
    options = RunOptions(
        str(tmp_path / "landing"), str(tmp_path / "root"), recipe=written(tmp_path, "filter_language: model", path)
    )
    with pytest.raises(RecipeError, match=re.escape(f"recipe mine: filter_language: model: {path} ")):
        run(options)
    assert not (tmp_path / "root").exists()
