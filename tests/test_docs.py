"""The documentation: generated pages are fresh, names that it mentions exist, and its examples run."""

import argparse
import io
import re
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tokenizers
import yaml

from pipeline_tasks.cli import reference
from pipeline_tasks.cli.main import build_parser
from pipeline_tasks.publish.exports import lineage, tokens
from pipeline_tasks.publish.ledger import queries
from pipeline_tasks.recipe import parse_recipe, recipe_names, stage_card
from pipeline_tasks.stages.pack.sequences import SEQUENCE
from tests.training_dataset import write_dataset

PROJECT = Path(__file__).parent.parent
PAGES = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])
TEXTS = {page.relative_to(PROJECT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
ALL = "\n".join(TEXTS.values())

IMAGE_BYTES = 200_000
READING = "docs/how-to/read-the-tokens.md"
TRAINING = "docs/how-to/train-from-a-dataset.md"

PROSE = "Rain fell on the harbor all night, and the boats stayed where they were."


def commands() -> list[str]:
    return sorted(parsers())


def parsers() -> dict[str, argparse.ArgumentParser]:
    (commands,) = (action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(commands.choices)


def command_lines(text: str) -> list[tuple[str, str]]:
    """Return the `refinery` commands of code blocks and code spans, each with its arguments."""
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL) + re.findall(r"^ {4}(refinery .*)$", text, re.MULTILINE)
    lines = [line.replace("\\\n", " ") for block in blocks for line in re.split(r"(?<!\\)\n", block)]
    spans = re.findall(r"`(refinery [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    matches = (re.match(r"(?:\.venv/bin/)?refinery ([a-z][a-z-]*)(.*)", line, re.DOTALL) for line in [*lines, *spans])
    return [(match[1], match[2].partition("  #")[0]) for match in matches if match]


def code(page: str, language: str) -> Iterator[str]:
    return (match[1] for match in re.finditer(rf"```{language}\n(.*?)```", TEXTS[page], re.DOTALL))


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_generated_page_is_fresh(name: str) -> None:
    page = reference.PAGES[name]()
    assert TEXTS[f"docs/reference/{name}"] == page, "run `python -m pipeline_tasks.cli.reference`"


@pytest.mark.parametrize("command", commands())
def test_every_command_is_in_the_docs(command: str) -> None:
    assert f"refinery {command}" in ALL


@pytest.mark.parametrize("command", commands())
def test_the_help_of_every_command_says_what_it_does(command: str) -> None:
    assert parsers()[command].description


@pytest.mark.parametrize("recipe", recipe_names())
def test_every_recipe_is_in_the_docs(recipe: str) -> None:
    assert f"`{recipe}`" in ALL


@pytest.mark.parametrize("stage", ["ingest", "extract"])
def test_every_damage_has_its_meaning(stage: str) -> None:
    missing = [
        why
        for why in stage_card(stage).reasons
        if why.startswith("error:") and f"`{why}`" not in TEXTS["docs/reference/failures.md"]
    ]
    assert missing == []


def test_tests_that_the_docs_name_exist() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in PROJECT.glob("tests/**/test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", ALL))
    assert named
    assert sorted(name for name in named if f"def {name}(" not in sources) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    inside = [link for link in links if "://" not in link]
    assert [link for link in inside if not (page.parent / link).exists()] == []


def test_the_recipe_of_the_docs_is_sound() -> None:
    (text,) = code("docs/how-to/write-a-recipe.md", "yaml")
    assert [step.stage for step in parse_recipe(yaml.safe_load(text), "docs").steps][-1] == "pack"


def test_queries_of_the_docs_are_in_the_ledger() -> None:
    named = re.findall(r'\.query\("(\w+)"', ALL)
    assert named
    assert set(named) <= set(queries())


@pytest.mark.parametrize("page", TEXTS)
def test_options_that_the_docs_name_exist(page: str) -> None:
    """Every `refinery COMMAND ... --option` of a page is known to the parser of that command."""
    unknown = [
        f"refinery {command} {option}"
        for command, arguments in command_lines(TEXTS[page])
        for option in re.findall(r"--[a-z][a-z-]*", arguments)
        if command not in parsers() or option not in parsers()[command]._option_string_actions
    ]
    assert unknown == []


@pytest.mark.parametrize("page", TEXTS)
def test_commands_that_the_docs_name_exist(page: str) -> None:
    assert [command for command, _ in command_lines(TEXTS[page]) if command not in parsers()] == []


def test_bounds_that_the_docs_set_exist() -> None:
    named = set(re.findall(r"--set (?:[a-z]{2,3}\.)?(\w+)\.(\w+)=", ALL))
    assert named
    limits = {profile: import_module(f"pipeline_tasks.filters.{profile}").FILTER.limits for profile, _ in named}
    known = {(profile, field.name) for profile, cls in limits.items() for field in fields(cls)}
    assert named <= known


@pytest.mark.parametrize("page", TEXTS)
def test_paths_that_the_docs_name_exist(page: str) -> None:
    named = re.findall(r"`((?:pipeline_tasks|plugins|dags|expectations|sql|tests|benchmarks)/[\w./-]*)`", TEXTS[page])
    assert [path for path in named if not (PROJECT / path).exists()] == []


def test_images_that_the_docs_show_are_small() -> None:
    images = [*PROJECT.glob("docs/images/*")]
    assert images
    assert [image.name for image in images if image.stat().st_size > IMAGE_BYTES] == []


def test_the_examples_of_training_run(tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [20])
    names: dict[str, Any] = {"rank": 0, "new_world_size": 2}
    examples = [example for example in code(TRAINING, "python") if "StatefulDataLoader" not in example]
    assert len(examples) == 5
    for example in examples:
        here = re.sub(r'"(/data|s3://bucket)/[^"]*"', repr(str(packed.folder)), example).replace(
            "/scratch", str(tmp_path)
        )
        names["loader"] = names["dataset"].batches() if "dataset" in names else None
        exec(compile(here, "guide.md", "exec"), names)
        names["batch"] = {"resume_at": 16}
    assert names["usage"].sequences == (2 * 20 - 16) / 2


def published(home: Path) -> None:
    """Write the exported files of a version of one document, as `publish` does."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator([PROSE], tokenizers.trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    tokenizer.save(str(home / "tokenizer.json"))
    ids = tokenizer.encode(PROSE).ids
    piece = {"id": "a", "doc_start": 0, "start": 0, "length": len(ids)}
    row = {"sequence": 0, "tokens": ids, "n_tokens": len(ids), "pieces": [piece]}
    sequences = pa.RecordBatch.from_pylist([row], schema=SEQUENCE)
    origin = {"snapshot": "s", "file": "f.warc.gz", "offset": 7, "record_id": "<urn:r>", "url": "https://example.org/"}
    documents = pa.RecordBatch.from_pylist([{"id": "a", **origin}])
    out = io.BytesIO()
    counts = tokens.write_bin([sequences], out, "uint16")
    (home / "tokens.bin").write_bytes(out.getvalue())
    (home / "tokens.json").write_bytes(tokens.index_bytes(counts, "uint16", "abc"))
    table = pa.Table.from_batches(lineage.lineage_batches([sequences], [documents]))
    pq.write_table(table, home / "lineage.parquet")


def test_the_examples_of_reading_tokens_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(tmp_path)
    examples = [example for example in code(READING, "python") if "tokens.bin" in example]
    assert len(examples) == 2
    for example in examples:
        here, replaced = re.subn(r'folder = Path\(".*"\)', f"folder = Path({str(tmp_path)!r})", example)
        assert replaced == 1
        names: dict[str, Any] = {}
        exec(compile(here, "guide.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "1 sequences of" in printed
    assert PROSE in printed
    assert "https://example.org/ <urn:r> f.warc.gz 7" in printed
