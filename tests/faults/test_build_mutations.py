"""Every object of a training dataset is damaged: `verify` names it, its way out is true, and no reader is deceived."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pipeline_tasks.cli.again import How, build_again
from pipeline_tasks.errors import ContractError, RefineryError
from pipeline_tasks.inspect.find import find
from pipeline_tasks.inspect.verify import objects as verified_objects
from pipeline_tasks.inspect.verify.findings import Problem
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.published_shards import open_build
from pipeline_tasks.training.dataset import TokenDataset
from tests.mutations import Mutation, applied, of_bytes, of_json
from tests.small_build import DATASET, STAGES, build, copied, objects, recipe
from tests.small_root import SmallRoot

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
    "superseded documents",
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
)
"""A literal list, so that a kind that no build has any more is noticed."""

EDITED = ("log entry", "manifest of compose", "manifest of mix", "verdict")

NOT_MISSED = {
    ("log head", "delete"): "the last head may be missing after a crash: a note",
    ("log head", "empty"): "an empty object is no commit",
    **{(f"receipt of {stage}", "delete"): "read only by a run that lacks the manifest" for stage in STAGES},
    **{(f"receipt of {stage}", "empty"): "an empty object is no commit" for stage in STAGES},
}
"""Changes that take nothing away, and why: `verify` need not report them."""


@pytest.fixture(scope="module")
def undamaged(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    small = copied(small_root, tmp_path_factory.mktemp("build"))
    build(small, judged=True)
    return small


@pytest.fixture
def small(undamaged: SmallRoot, tmp_path: Path) -> SmallRoot:
    return copied(undamaged, tmp_path)


@pytest.fixture(autouse=True)
def _in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified_objects, "THREADS", 1)


def mutations(small: SmallRoot, kind: str) -> Iterator[Mutation]:
    paths = objects(small)[kind]
    yield from of_bytes(kind, paths[0], next(iter(paths[1:]), None))
    if kind in EDITED:
        yield from of_json(kind, paths[0])


def bodies(small: SmallRoot) -> dict[str, bytes]:
    """The bytes of every published file of the dataset, by path."""
    version = version_log.current(small.root, DATASET)
    return {file.path: Path(small.root, file.path).read_bytes() for file in version.files}


def test_every_kind_of_object_is_mutated(undamaged: SmallRoot) -> None:
    kinds = objects(undamaged)
    assert tuple(kinds) == KINDS
    assert all(kinds.values())
    assert verify(undamaged.root).findings.problems == []


@pytest.mark.parametrize("kind", KINDS)
def test_verify_names_every_mutation_of_a_build(kind: str, undamaged: SmallRoot) -> None:
    silent = []
    for mutation in mutations(undamaged, kind):
        with applied(mutation):
            problems = verify(undamaged.root).findings.problems
        named = any(str(mutation.path) in problem.object for problem in problems)
        found = problems if kind == "log entry" else named  # an entry with a new seal differs from its head
        if not found and (kind, mutation.name) not in NOT_MISSED:
            silent.append(mutation.name)
        assert all(problem.heal or problem.object.startswith("version") for problem in problems), problems
        assert not [problem for problem in problems if "snapshot build" in problem.heal]
    assert silent == []


def follow(small: SmallRoot, problem: Problem) -> None:
    """Do what the way to heal says, to the letter."""
    path, heal = Path(problem.object), problem.heal
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
        build(small, judged=True)


HEALED = [kind for kind in KINDS if not kind.startswith(("log ", "receipt"))]


@pytest.mark.parametrize("kind", HEALED)
@pytest.mark.parametrize("damage", ["flip", "truncate", "delete"])
def test_the_way_out_of_a_damaged_build_is_true(kind: str, damage: str, small: SmallRoot) -> None:
    """Its files were not written again before: each build read the damaged `dataset.json` first."""
    before, path = bodies(small), objects(small)[kind][0]
    mutation = next(mutation for mutation in mutations(small, kind) if mutation.name == damage)
    if mutation.body is None:
        path.unlink()
    else:
        path.write_bytes(mutation.body)
    problems = verify(small.root).findings.problems
    follow(small, next(problem for problem in problems if problem.object == str(path)))
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
    right = READERS[reader](undamaged)
    for mutation in mutations(undamaged, kind):
        with applied(mutation):
            read = outcome(partial(READERS[reader], undamaged))
        if isinstance(read, RefineryError) and kind != "log entry":  # of a log, its head or its entry may be named
            assert str(mutation.path) in str(read), mutation.name
            assert f"`refinery build --again 1 --recipe {DATASET}`" in str(read), mutation.name
        assert isinstance(read, RefineryError) or read == right, mutation.name


def outcome(work: Callable[[], object]) -> object:
    """What work returns, or the refusal that it raises."""
    try:
        return work()
    except RefineryError as error:
        return error


BEHIND = {
    "manifest of compose": STAGES,
    "manifest of select": STAGES[1:],
    "superseded documents": STAGES,
    "layer of select": STAGES[1:],
    "layer of mix": STAGES[2:],
    "shuffled shard": STAGES[3:],
    "packed shard": (),
}
"""Objects that the next build reads, and the stages behind each."""


@pytest.mark.parametrize("kind", sorted(BEHIND))
def test_a_build_over_damaged_objects_says_so_or_is_right(kind: str, small: SmallRoot) -> None:
    other = replace(recipe(), name="other")
    before = build(small, other)
    index = Path(small.root, before["index"]).read_bytes()
    damaged = list(mutations(small, kind))
    for stage in BEHIND[kind]:
        shutil.rmtree(Path(small.root, stage))
    shutil.rmtree(Path(small.root, "publish", "shards"))
    for mutation in damaged:
        with applied(mutation):
            published = outcome(partial(build, small, other))
        if isinstance(published, RefineryError):
            assert str(mutation.path) in str(published), mutation.name
            assert "again" in str(published), mutation.name
        else:
            assert published == before, mutation.name
            assert Path(small.root, before["index"]).read_bytes() == index


@pytest.mark.parametrize("kind", [".bin", ".ends", ".lineage.parquet"])
def test_the_loader_refuses_every_mutation_of_a_shard(kind: str, undamaged: SmallRoot) -> None:
    dataset = TokenDataset(str(objects(undamaged)["dataset.json"][0]))
    dataset.verify()
    for mutation in mutations(undamaged, kind):
        with applied(mutation), pytest.raises(RefineryError, match=mutation.path.name):
            dataset.verify()


def test_the_loader_refuses_every_mutation_of_an_index(undamaged: SmallRoot) -> None:
    """It noticed those that contradict something, and not a changed digit of a digest."""
    [path] = objects(undamaged)["dataset.json"]
    index, body = TokenDataset(str(path)).index, path.read_bytes()
    edits = list(of_json("dataset.json", path))
    for mutation in [*mutations(undamaged, "dataset.json"), *(edit for edit in edits if edit.name == "edit")]:
        with applied(mutation):
            if mutation.body is not None and mutation.body.strip() == body.strip():  # no line end, or two
                assert replace(TokenDataset(str(path)).index, digest=index.digest) == index
                continue
            with pytest.raises(RefineryError, match=r"dataset\.json"):
                TokenDataset(str(path))


def test_an_entry_that_is_no_json_names_the_log(undamaged: SmallRoot) -> None:
    [path] = objects(undamaged)["log entry"]
    with applied(Mutation("log entry", "empty", path, b"")), pytest.raises(ContractError, match=str(path)):
        version_log.current(undamaged.root, DATASET)
