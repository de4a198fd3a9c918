"""Every object of a training dataset is damaged: `verify` names it, its way out is true, and no reader is deceived."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pipeline_tasks.cli.again import How, build_again
from pipeline_tasks.errors import ContractError, RefineryError
from pipeline_tasks.inspect.search.find import find
from pipeline_tasks.inspect.verify.findings import Problem
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.publish.datasets.published_shards import named_files, open_build
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import SEAL, path_of
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.training.dataset import TokenDataset
from tests.mutations import SHORT, Mutation, applied, misnamed, of_bytes, of_json, shortened
from tests.small_build import DATASET, STAGES, build, copied, objects, recipe
from tests.small_root import DAYS, RECIPE, SmallRoot

pytestmark = pytest.mark.slow

KINDS = (
    "log entry",
    "log head",
    "manifest of compose",
    "manifest of mix",
    "manifest of pack",
    "manifest of select",
    "manifest of shuffle",
    "manifest of takedown",
    "manifest of tokenize",
    "superseded documents",
    "tokenizer",
    "layer of select",
    "layer of mix",
    "plan",
    "rejects of select",
    "rejects of mix",
    "shuffled shard",
    "packed shard",
    "receipt of select",
    "receipt of mix",
    "verdict",
    "Data Docs page",
    "dataset.json",
    "build.json",
    "tokenizer.json",
    "README.md",
    ".bin",
    ".ends",
    ".lineage.parquet",
    "tokenizer pin",
    "tokenizer definition",
)
"""A literal list, so that a kind that no build has any more is noticed."""

EDITED = ("log entry", "manifest of compose", "manifest of mix", "verdict", "tokenizer pin")

FIRST = ("log entry", "manifest of compose", "dataset.json", "tokenizer pin", "tokenizer definition")
"""Kinds that `verify` reads by lines that no object of a refined snapshot passes; test_mutations.py has all others."""

UNNAMED = {
    ("log head", "delete"): "the last head may be missing after a crash: a note",
    **{(f"receipt of {stage}", "delete"): "read only by a run that lacks the manifest" for stage in STAGES},
    **{(f"receipt of {stage}", "empty"): "an empty object is no commit" for stage in STAGES},
}
"""Changes that take nothing away, and why: `verify` names nothing. After every other it names the changed object."""


@pytest.fixture(scope="module")
def undamaged(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    small = copied(small_root, tmp_path_factory.mktemp("build"))
    build(small, judged=True)
    return small


@pytest.fixture
def small(undamaged: SmallRoot, tmp_path: Path) -> SmallRoot:
    return copied(undamaged, tmp_path)


def mutations(small: SmallRoot, kind: str, dataset: str = DATASET) -> Iterator[Mutation]:
    paths = objects(small, dataset)[kind]
    yield from of_bytes(kind, paths[0], next(iter(paths[1:]), None))
    if kind in EDITED:
        yield from of_json(kind, paths[0])


def bodies(small: SmallRoot) -> dict[str, bytes]:
    """The bytes of every published file of the dataset, by path."""
    version = version_log.current(small.root, DATASET)
    return {file.path: Path(small.root, file.path).read_bytes() for file in named_files(small.root, version)}


def test_every_kind_of_object_is_mutated(undamaged: SmallRoot) -> None:
    kinds = objects(undamaged)
    assert tuple(kinds) == KINDS
    assert [kind for kind, paths in kinds.items() if not paths] == []
    assert verify(undamaged.root).findings.problems == []


COMPARED = {"tokenizer pin": {"recipe", "digest"}}
"""Fields whose change is found under a new seal too, of kinds that no digest names; of all other kinds every field."""


def is_unnamed(mutation: Mutation) -> bool:
    named = COMPARED.get(mutation.kind, {mutation.field})
    unread = mutation.name == "sealed edit" and mutation.field not in named
    return (mutation.kind, mutation.name) in UNNAMED or unread


@pytest.mark.parametrize("kind", KINDS)
def test_verify_names_the_changed_object_of_a_build_and_no_other(kind: str, undamaged: SmallRoot) -> None:
    tried = shortened(mutations(undamaged, kind), first=kind in FIRST)
    assert {mutation.name for mutation in tried} >= {"flip", *(["truncate", "delete"] if kind in FIRST else [])}
    assert misnamed(undamaged.root, tried, is_unnamed) == []


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_verify_names_the_changed_object_of_a_build_after_every_mutation(kind: str, undamaged: SmallRoot) -> None:
    tried = list(mutations(undamaged, kind))
    assert len(tried) >= (20 if kind in EDITED else 8)
    assert misnamed(undamaged.root, tried, is_unnamed) == []


def sources(small: SmallRoot) -> dict[str, Path]:
    """Objects of the snapshots that the dataset was built of."""
    version = version_log.current(small.root, RECIPE, DAYS[0])
    return {
        "log entry": Path(small.root, version_log.version_path(RECIPE, version.number)),
        "manifest": Path(small.root, path_of(version.refined)),
        "shard": Path(small.root, read_manifest(small.root, version.refined).shards[0].path),
    }


@pytest.mark.parametrize("kind", ["log entry", "manifest", "shard"])
def test_verify_names_the_changed_object_of_a_snapshot_and_nothing_that_was_built_of_it(
    kind: str, undamaged: SmallRoot
) -> None:
    tried = [mutation for mutation in of_bytes(kind, sources(undamaged)[kind], None) if mutation.name in SHORT]
    assert {mutation.name for mutation in tried} == {"flip", "truncate", "delete"}
    assert misnamed(undamaged.root, tried, is_unnamed) == []


def follow(small: SmallRoot, problem: Problem) -> None:
    """Do what the way to heal says, to the letter."""
    path, heal = Path(problem.object), problem.heal
    if heal.startswith("copy "):
        shutil.copy(heal.removeprefix("copy ").removesuffix(" there"), path)
        return
    again = f"run `refinery build --again {version_log.current(small.root, DATASET).number} --recipe {DATASET}`"
    assert again in heal or f"build {DATASET} again" in heal, heal
    if "remove the folder" in heal:
        shutil.rmtree(heal.partition("remove the folder ")[2].partition(" and ")[0])
    elif "remove it" in heal:
        path.unlink(missing_ok=True)
    if "and partitions/ beside that" in heal:
        manifest = Path(heal.partition("remove it, ")[2].partition(" and ")[0])
        manifest.unlink()
        shutil.rmtree(manifest.parent / "partitions", ignore_errors=True)
    if again in heal:
        build_again(small.root, DATASET, "1", How("local", {}))
    else:
        build(naming_its_tokenizer(small, heal), judged=True)


def naming_its_tokenizer(small: SmallRoot, heal: str) -> SmallRoot:
    """Return the root with the tokenizer that the recipe has to name first, if the way to heal says so."""
    published = heal.partition("let it name ")[2].removesuffix(" first")
    if not published:
        return small
    own = replace(small, landing=Path(small.root).parent / "own" / "landing")
    Path(own.tokenizer).parent.mkdir()
    shutil.copy(published, own.tokenizer)
    return own


HEALED = [kind for kind in KINDS if not kind.startswith(("log ", "receipt"))]

WAYS = (
    ("manifest of compose", "delete"),
    ("manifest of mix", "flip"),
    ("superseded documents", "truncate"),
    ("layer of select", "delete"),
    ("packed shard", "flip"),
    ("verdict", "truncate"),
    ("Data Docs page", "delete"),
    ("dataset.json", "flip"),
    (".bin", "truncate"),
    ("tokenizer pin", "flip"),
    ("tokenizer definition", "delete"),
)
"""A kind of object and a damage for each way to heal, and for what each way makes again."""

EVERY_WAY = [
    pytest.param(kind, damage, marks=() if (kind, damage) in WAYS else pytest.mark.nightly)
    for kind in HEALED
    for damage in ("flip", "truncate", "delete")
]


@pytest.mark.parametrize(("kind", "damage"), EVERY_WAY)
def test_the_way_out_of_a_damaged_build_is_true(kind: str, damage: str, small: SmallRoot) -> None:
    """Its files were not written again before: each build read the damaged `dataset.json` first."""
    before, path = bodies(small), objects(small)[kind][0]
    mutation = next(mutation for mutation in mutations(small, kind) if mutation.name == damage)
    if mutation.body is None:
        path.unlink()
    else:
        path.write_bytes(mutation.body)
    problems = verify(small.root).findings.problems
    assert {problem.object for problem in problems} == {str(path)}
    follow(small, problems[0])
    assert verify(small.root).findings.problems == []
    assert bodies(small) == before


def pieces(small: SmallRoot) -> list[object]:
    """Return what is read of every position of the dataset that has a document."""
    dataset = open_build(small.root, version_log.current(small.root, DATASET))
    spots = [dataset.spot(position) for position in range(0, dataset.index["sequences"] * 64, 64)]
    return [(dataset.piece(spot), dataset.sequence(spot).shape) for spot in spots]


READERS: Mapping[str, Callable[[SmallRoot], object]] = {
    "find": lambda small: list(
        find(small.root, version_log.latest_by_snapshot(small.root, DATASET), [("site", "example.org")])
    ),
    "trace": pieces,
}


@pytest.mark.parametrize("kind", ["log entry", "dataset.json", ".bin", ".lineage.parquet"])
@pytest.mark.parametrize("reader", sorted(READERS))
def test_a_reader_of_a_damaged_build_says_so_or_is_right(kind: str, reader: str, undamaged: SmallRoot) -> None:
    right, wrong = READERS[reader](undamaged), []
    tried = list(mutations(undamaged, kind))
    for mutation in tried:
        with applied(mutation):
            read = outcome(partial(READERS[reader], undamaged))
        # of a log, its head or its entry may be named
        refusal = (
            ("",) if kind == "log entry" else (str(mutation.path), f"`refinery build --again 1 --recipe {DATASET}`")
        )
        is_refused = isinstance(read, RefineryError) and all(part in str(read) for part in refusal)
        if not is_refused and read != right:
            wrong.append((mutation.name, read))
    assert len(tried) >= 8
    assert wrong == []


def outcome(work: Callable[[], object]) -> object:
    """What work returns, or the refusal that it raises."""
    try:
        return work()
    except RefineryError as error:
        return error


BEHIND = {
    "manifest of compose": STAGES,
    "manifest of tokenize": STAGES[1:],
    "manifest of select": STAGES[2:],
    "superseded documents": STAGES,
    "layer of select": STAGES[2:],
    "layer of mix": STAGES[3:],
    "shuffled shard": STAGES[4:],
    "packed shard": (),
}
"""Objects that the next build reads, and the stages behind each."""


@pytest.mark.parametrize("kind", sorted(BEHIND))
@pytest.mark.parametrize("form", ["short", pytest.param("long", marks=pytest.mark.nightly)])
def test_a_build_over_damaged_objects_says_so_or_is_right(kind: str, form: str, small: SmallRoot) -> None:
    other = replace(recipe(), name="other")
    before = build(small, other)
    index = Path(small.root, before["index"]).read_bytes()
    damaged = list(mutations(small, kind, other.name))
    for stage in BEHIND[kind]:
        shutil.rmtree(Path(small.root, stage))
    shutil.rmtree(Path(small.root, "publish", "shards"))
    refused, wrong = [], []
    for mutation in shortened(damaged, first=True) if form == "short" else damaged:
        with applied(mutation):
            published = outcome(partial(build, small, other))
        if isinstance(published, RefineryError):
            refused.append(mutation.name)
            is_right = str(mutation.path) in str(published) and "again" in str(published)
        else:
            is_right = published == before and Path(small.root, before["index"]).read_bytes() == index
        if not is_right:
            wrong.append((mutation.name, mutation.field, published))
    assert wrong == []
    is_written_again = kind == "superseded documents"  # by every composition, whatever is there
    assert ("flip" in refused) != is_written_again


@pytest.mark.parametrize("kind", [".bin", ".ends", ".lineage.parquet"])
def test_the_loader_refuses_every_mutation_of_a_shard(kind: str, undamaged: SmallRoot) -> None:
    dataset = TokenDataset(str(objects(undamaged)["dataset.json"][0]))
    dataset.verify()
    tried = list(mutations(undamaged, kind))
    assert len(tried) >= 8
    for mutation in tried:
        with applied(mutation), pytest.raises(RefineryError, match=re.escape(mutation.path.name)):
            dataset.verify()


def test_the_loader_refuses_every_mutation_of_an_index(undamaged: SmallRoot) -> None:
    """It noticed those that contradict something, and not a changed digit of a digest."""
    [path] = objects(undamaged)["dataset.json"]
    index, body = TokenDataset(str(path)).index, path.read_bytes()
    tried = list(mutations(undamaged, "dataset.json"))
    edits = [mutation for mutation in of_json("dataset.json", path) if mutation.name == "edit"]
    assert {edit.field for edit in edits} == json.loads(body).keys() - {SEAL}
    accepted = []
    for mutation in [*tried, *edits]:
        with applied(mutation):
            if mutation.body is not None and mutation.body.strip() == body.strip():  # no line end, or two
                accepted.append(mutation.name)
                assert replace(TokenDataset(str(path)).index, digest=index.digest) == index
                continue
            with pytest.raises(RefineryError, match=re.escape(path.name)):
                TokenDataset(str(path))
    assert accepted == ["truncate", "append"]


def test_an_entry_that_is_no_json_names_the_log(undamaged: SmallRoot) -> None:
    [path] = objects(undamaged)["log entry"]
    with applied(Mutation("log entry", "empty", path, b"")), pytest.raises(ContractError, match=re.escape(str(path))):
        version_log.current(undamaged.root, DATASET)
