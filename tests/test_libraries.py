"""What decides bytes is identity: each card names the libraries below its rows, and workers have those of the plan."""

import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import grimp
import pyarrow as pa
import pytest

from pipeline_tasks import libraries
from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.file_types import brought_types
from pipeline_tasks.file_types import libraries as libraries_of_files
from pipeline_tasks.libraries import UNICODE, differences, installed
from pipeline_tasks.manifest import fingerprint_of, load, shared_prefix
from pipeline_tasks.profiles.removals import DERIVED
from pipeline_tasks.run.plan import plan
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.tasks.task import StageIO, Task, run
from pipeline_tasks.stage import Batches, Stage
from pipeline_tasks.stages import NAMES
from pipeline_tasks.store import storage
from tests.documents import documents
from tests.embedded import PROJECT
from tests.refining import commit_parent
from tests.toys import table

EXPLAINED = {
    "numpy": "whole numbers, and sums in an order of our own",
    "numba": "compiles our loops, without fast math",
    "llvmlite": "numba's compiler",
    "pyarrow": "its feature release is in every fingerprint",
    "zstandard": "a codec gives back what it was given",
    "xxhash": "XXH3 is frozen",
    "orjson": "JSON is",
    "zlib-ng": "DEFLATE is",
    "brotlicffi": "Brotli is",
    "boto3": "bytes as they are stored",
    "obstore": "bytes as they are stored",
    "botocore": "bytes as they are stored",
    "pyyaml": "reads files of ours, whose digests are identity as they are",
    "huggingface-hub": "fetches a file that has its commit and digest",
    "safetensors": "behind a state",
    "spacy": "behind a state",
}
"""Why a library below rows is on no card; what is behind a state differs between classes of hardware, too."""

UNUSED = {
    ("embed", UNICODE): "takes the digest of a model from the module that reads fastText's",
    ("embed", "tokenizers"): "behind a state",
    ("filter_toxicity", "tokenizers"): "behind a state",
    ("read_images", "resiliparse"): "writes the text that a reader gives, which this stage does not keep",
    ("read_images", UNICODE): "writes the text that a reader gives, which this stage does not keep",
    ("score_quality", "tokenizers"): "behind a state",
}
"""Libraries that are imported below a stage, and decide none of its rows."""

BEHIND = {
    "charset-normalizer": "trafilatura: pages are given to it as text",
    "certifi": "trafilatura: downloads",
    "urllib3": "trafilatura: downloads",
    "courlan": "trafilatura: addresses, which are not asked for",
    "htmldate": "trafilatura: dates, which are not asked for",
    "fastwarc": "resiliparse requires its own version of it",
    "wcwidth": "ftfy: the width of characters on a terminal",
    "huggingface-hub": "tokenizers: downloads",
    "regex": "tiktoken: its teaching part; the encoder is compiled with a library of its own",
    "requests": "tiktoken: downloads",
    "awkward": "gigatoken: arrays of ids",
    "typer": "gigatoken: its command",
    "numpy": EXPLAINED["numpy"],
}
"""Why what a named library requires need not be named as well."""


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(
        "pipeline_tasks", include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )


@cache
def distributions() -> Mapping[str, list[str]]:
    """The distributions that have each package; to read the files of all takes half a second."""
    return packages_distributions()


def imported(modules: Iterable[str]) -> set[str]:
    """The distributions that are imported by modules of ours, or by what these import, anywhere in their code."""
    seen: set[str] = set()
    waiting = [name for module in modules for name in (module, *graph().find_descendants(module))]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += graph().find_modules_directly_imported_by(module) if module.startswith("pipeline_tasks") else ()
    outside = {name for name in seen if not name.startswith("pipeline_tasks") and name not in sys.stdlib_module_names}
    named = distributions()
    tables = {UNICODE} if "unicodedata" in seen else set()
    return {named.get(name, [name])[0].lower().replace("_", "-") for name in outside} | tables


def below(card: Stage[Any]) -> set[str]:
    """What is imported below the rows of a stage, and below what its manifest counts of them."""
    modules = [f"pipeline_tasks.stages.{card.name}"]
    modules += ["pipeline_tasks.run.tasks.landed_files"] if card.name == "ingest" else []
    modules += ["pipeline_tasks.filters"] if card.name == "filter_quality" else []
    modules += ["pipeline_tasks.text.pii"] if card.name == "scrub_pii" else []
    modules += ["pipeline_tasks.profiles.removals"] if set(card.profiled) & set(DERIVED) else []
    return imported(modules)


def test_what_is_identity_is_pinned_to_what_is_installed_here() -> None:
    """Else an Airflow with the constraints of the wheel has other fingerprints than a checkout."""
    pinned = dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", (PROJECT / "requirements.txt").read_text(), re.MULTILINE))
    named = {name for stage in NAMES for name in stage_card(stage).libraries} - {UNICODE}
    assert {name: pinned.get(name) for name in named} == installed(named)


@pytest.mark.parametrize("stage", NAMES)
def test_a_card_names_every_library_below_its_rows_and_no_other(stage: str) -> None:
    card = stage_card(stage)
    unused = {name for named, name in UNUSED if named == stage}
    found = below(card)
    assert unused <= found
    expected = found - EXPLAINED.keys() - unused
    of_files = {*libraries_of_files()} - found if stage in ("extract", "read_images") else set()
    required = {name for name in card.libraries if name not in found} - of_files
    assert set(card.libraries) - required - of_files == expected
    assert all(any(name in needed(each) for each in expected) for name in required)


def needed(library: str) -> set[str]:
    """The distributions that a library requires always."""
    entries = [] if library == UNICODE else [entry for entry in requires(library) or () if "extra ==" not in entry]
    names = {
        re.split(r"[<>=!~;\[ ]", entry)[0].lower().replace("_", "-")
        for entry in entries
        if "python_version" not in entry
    }
    return names | ({"lxml-html-clean"} if library == "justext" else set())  # its extra lxml[html_clean]


def test_what_named_libraries_require_is_named_or_explained() -> None:
    named = {name for stage in NAMES for name in stage_card(stage).libraries}
    assert len(named) > 12
    missing = {(name, each) for name in named for each in needed(name) - named - BEHIND.keys()}
    assert missing == set()


def test_exceptions_are_all_in_use() -> None:
    every = set().union(*(below(stage_card(stage)) for stage in NAMES))
    assert every >= EXPLAINED.keys()


def test_only_libraries_that_the_params_use_are_identity() -> None:
    extract, tokenize = stage_card("extract"), stage_card("tokenize")
    alone = extract.params(method="resiliparse", fallback=(), repair=False)
    assert extract.libraries_of(alone) == ("charset-normalizer", "resiliparse", UNICODE)
    files = extract.params(method="resiliparse", fallback=(), repair=False, types=("html", *brought_types()))
    assert {*extract.libraries_of(files)} == {*extract.libraries_of(alone), *libraries_of_files()}
    by_both = extract.params(method="trafilatura", types=("pdf",))
    assert {"lxml", "pypdfium2"} < {*extract.libraries_of(by_both)}
    both = extract.params(fallback=("trafilatura", "justext"))
    assert {"trafilatura", "justext", "lxml", "lxml-html-clean", "ftfy"} < {*extract.libraries_of(both)}
    assert tokenize.libraries_of(tokenize.params(backend="reference")) == ("tokenizers", UNICODE)
    assert "tiktoken" in tokenize.libraries_of(tokenize.params("tiktoken:gpt2", backend="reference"))


def test_the_version_of_a_library_is_part_of_every_name_that_rows_are_found_by() -> None:
    base = ("extract", 1, {}, ["p"], {})
    prints = {fingerprint_of(*base), *(fingerprint_of(*base, {"ftfy": version}) for version in ("6.3.0", "6.3.1"))}
    shared = {shared_prefix("dedup_minhash", 1, named) for named in ({}, {UNICODE: "14.0.0"}, {UNICODE: "15.0.0"})}
    assert (len(prints), len(shared)) == (3, 3)
    assert fingerprint_of(*base, {}) == fingerprint_of(*base)


def other(monkeypatch: pytest.MonkeyPatch, name: str, version: str) -> None:
    """Let another version of a library be installed on this machine."""
    known = libraries._version
    monkeypatch.setattr(libraries, "_version", lambda asked: version if asked == name else known(asked))


def test_another_version_of_a_library_is_another_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = documents(["call +1 650 253 0000 now"], language=pa.array(["en"]))
    request = RefineRequest(str(tmp_path), "scrub_pii", {}, commit_parent(tmp_path, [texts]))
    before = plan(request)
    assert (
        before.libraries
        == before.io.libraries
        == installed(["google-re2", "phonenumbers", "publicsuffixlist", UNICODE])
    )
    other(monkeypatch, "ftfy", "0.0.1")
    assert plan(request).fingerprint == before.fingerprint
    other(monkeypatch, "phonenumbers", "0.0.1")
    after = plan(request)
    assert after.fingerprint != before.fingerprint
    assert after.io.shared != before.io.shared


@pytest.mark.parametrize(
    "planned",
    [
        {"libraries": {"ftfy": "0.0.1"}},
        {"libraries": {"ftfy": "0.0.1", UNICODE: "1.0"}},
        {"writer": "pyarrow-0.1 zstandard-0.2"},
        {"release": "0.0.1"},
    ],
)
def test_a_worker_with_other_versions_refuses_the_task_by_their_names(tmp_path: Path, planned: dict[str, Any]) -> None:
    shard = load(storage.connect(str(tmp_path)).read(commit_parent(tmp_path, [table(0, 3)]))).shards[0]
    with pytest.raises(JobLost) as refused:
        run(Task(StageIO(str(tmp_path), "toy/a", **planned), "key", unchanged, ((shard,),)))
    names = [
        *planned.get("libraries", ()),
        *(["pyarrow"] if "writer" in planned else []),
        *(["refinery-tokens"] if "release" in planned else []),
    ]
    assert all(name in str(refused.value) for name in names)
    assert not [*storage.connect(str(tmp_path)).list("toy/a")]
    assert run(Task(StageIO(str(tmp_path), "toy/a"), "key", unchanged, ((shard,),))).receipt.shard.rows == 3


def unchanged(batches: Batches) -> Batches:
    yield from batches


def test_a_library_that_is_not_installed_is_named() -> None:
    with pytest.raises(RecipeError, match="no-such-library"):
        installed(["no-such-library"])


def test_differences_are_said_by_name() -> None:
    assert differences({"a": "1", "b": "2"}, {"b": "3", "a": "1", "c": "4"}) == ["b 2 → 3", "c none → 4"]
