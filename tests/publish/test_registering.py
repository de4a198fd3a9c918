"""Tables of a catalog follow what is published: each version a snapshot, whatever was killed, lost, or done by others."""

import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from textwrap import dedent

import pyarrow.parquet as pq
import pytest
import yaml
from refinery_exports.tables import catalog as names
from refinery_exports.tables.catalog import HEAD, ROOT, SNAPSHOT, VERSION, Changed, DataFile, Table
from refinery_exports.tables.catalogs import opened
from refinery_exports.tables.registering import plain_root, register, register_version
from refinery_exports.tables.table_files import address_of, place_of, tables_of

from pipeline_tasks.engines.each import HERE
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import trial_of
from pipeline_tasks.store.log_chain import dataset_log, read_chain
from tests import small_build, small_root
from tests.commands import Refinery
from tests.small_root import DAYS, RECIPE, SmallRoot
from tests.table_catalogs import KINDS, catalog_at, settings_of, states, summary

TABLES = ["kept", "lineage", "rejects", "stages", "verdicts"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def address(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return catalog_at(kind, tmp_path / "catalog", monkeypatch)


@pytest.fixture(scope="module")
def written(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    """A root with the files of its tables; each test registers a copy."""
    folder = tmp_path_factory.mktemp("registered")
    small = small_build.copied(small_root, folder)
    with pytest.MonkeyPatch.context() as patch, opened(catalog_at("iceberg", folder / "catalog", patch)) as catalog:
        register(small.root, RECIPE, catalog, HERE)
    return small


@pytest.fixture
def small(written: SmallRoot, tmp_path: Path) -> SmallRoot:
    return small_build.copied(written, tmp_path)


def registered(root: str, address: str, **how: bool) -> None:
    with opened(address) as catalog:
        register(root, RECIPE, catalog, HERE, **how)


def clean(root: str, kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, frozenset[str]]]:
    """What one registration into an empty catalog leaves."""
    with monkeypatch.context() as patch:
        address = catalog_at(kind, folder, patch)
        registered(root, address)
        return summary(address, RECIPE)


def test_each_version_is_a_snapshot_that_names_it(small: SmallRoot, address: str) -> None:
    registered(small.root, address)
    versions = version_log.latest_by_snapshot(small.root, RECIPE)
    tables = states(address, RECIPE)
    assert [*tables] == TABLES
    assert sum(tables["kept"].files.values()) == sum(funnel(small.root, version)[-1]["rows"] for version in versions)
    chain = {entry.number: entry.digest for entry in read_chain(small.root, dataset_log(RECIPE))}
    newest = max(versions, key=lambda version: version.number)
    for state in tables.values():
        assert state.snapshots >= len(versions)
        assert {state.properties[name] for name in (ROOT, names.RECIPE)} == {small.root, RECIPE}
        assert (state.last[SNAPSHOT], state.last[VERSION]) == (newest.snapshot, str(newest.number))
        assert state.last[HEAD] == chain[newest.number]
        assert all(Path(each.removeprefix("file://")).is_file() for each in state.files)


def test_to_register_again_changes_nothing(small: SmallRoot, address: str) -> None:
    registered(small.root, address)
    tokens = {name: state.token for name, state in states(address, RECIPE).items()}
    with opened(address) as catalog:
        assert not any(done.commits for done in register(small.root, RECIPE, catalog, HERE))
    assert {name: state.token for name, state in states(address, RECIPE).items()} == tokens


def test_no_byte_of_a_file_is_copied(small: SmallRoot, address: str) -> None:
    registered(small.root, address)
    for state in states(address, RECIPE).values():
        assert all(each.startswith(address_of(small.root, "publish/")) for each in state.files)
    assert not list((Path(small.root).parent / "catalog").rglob("*.parquet"))


def test_one_version_after_the_other_is_as_all_at_once(
    small: SmallRoot, address: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(address) as catalog:
        for version in version_log.versions(small.root, RECIPE):
            done = register_version(small.root, version, catalog, HERE)
            assert (done == []) == (version.snapshot == small_root.RETRACTED)
    assert summary(address, RECIPE) == clean(small.root, kind, tmp_path / "clean", monkeypatch)


def test_a_retracted_snapshot_leaves_and_comes_back(small: SmallRoot, address: str, refinery: Refinery) -> None:
    registered(small.root, address)
    before = summary(address, RECIPE)
    version_log.retract(small.root, RECIPE, DAYS[1], "a test")
    registered(small.root, address)
    after = states(address, RECIPE)
    assert sum(after["kept"].files.values()) < before["kept"][0]
    assert after["kept"].snapshots > len(DAYS[:2])  # readers may still ask for what it was
    version_log.restore(small.root, RECIPE, DAYS[1])
    registered(small.root, address)
    assert summary(address, RECIPE) == before
    assert refinery("verify", small.root, "--catalog", address).returncode == 0


@pytest.mark.parametrize("is_taken_down", [False, True])
def test_a_version_that_was_judged_anew_has_its_own_verdicts(
    small: SmallRoot, address: str, refinery: Refinery, is_taken_down: bool
) -> None:
    """Its manifests are those of the version before, and so is the folder of its files."""
    if is_taken_down:  # another document's: every version is looked at then
        assert refinery("takedown", small.root, "--document", "0" * 32, "--reason", "a test").returncode == 0
    registered(small.root, address)
    before = states(address, RECIPE)
    version = version_log.current(small.root, RECIPE, DAYS[0])
    gates = dict(list(version.verdicts.items())[1:])
    same = {each.name: getattr(version, each.name) for each in fields(version)}
    anew = version_log.append(small.root, {**same, "verdicts": gates})
    assert (anew.prefix, anew.number > version.number) == (version.prefix, True)
    registered(small.root, address)
    after = states(address, RECIPE)
    assert sum(after["verdicts"].files.values()) == sum(before["verdicts"].files.values()) - 1
    assert sum(after["kept"].files.values()) == sum(before["kept"].files.values())
    assert refinery("verify", small.root, "--catalog", address).returncode == 0


def test_all_that_is_retracted_leaves_empty_tables(small: SmallRoot, address: str) -> None:
    registered(small.root, address)
    for day in DAYS[:2]:
        version_log.retract(small.root, RECIPE, day, "a test")
    registered(small.root, address)
    assert {name: rows for name, (rows, _) in summary(address, RECIPE).items()} == dict.fromkeys(TABLES, 0)


@pytest.mark.slow
def test_who_is_taken_down_and_erased_leaves_by_the_commands(
    small: SmallRoot, address: str, refinery: Refinery
) -> None:
    registered(small.root, address)
    before = states(address, RECIPE)
    gone = refinery("sql", small.root, "select id from kept order by id limit 1", "--format", "csv").stdout.split()[-1]
    done = refinery("takedown", small.root, "--document", gone, "--reason", "a test")
    assert f"{RECIPE}.kept" in done.stdout
    after = states(address, RECIPE)
    assert sum(after["kept"].files.values()) == sum(before["kept"].files.values()) - 1
    assert after["kept"].snapshots == 1  # nobody can ask for what it was
    assert refinery("erase", small.root).returncode == 0
    assert refinery("verify", small.root, "--catalog", address).returncode == 0
    assert states(address, RECIPE)["kept"].files == after["kept"].files
    assert not [path for path in before["kept"].files if path not in after["kept"].files and _is_there(path)]


def _is_there(address: str) -> bool:
    return Path(address.removeprefix("file://")).exists()


def test_what_others_put_into_a_table_is_found_and_repaired(
    small: SmallRoot, address: str, refinery: Refinery, tmp_path: Path
) -> None:
    registered(small.root, address)
    before = summary(address, RECIPE)
    file = next(iter(states(address, RECIPE)["stages"].files)).removeprefix("file://")
    own = tmp_path / "others" / "own.parquet"
    own.parent.mkdir()
    shutil.copy(file, own)
    with opened(address) as catalog:
        state = catalog.state(RECIPE, "stages")
        assert state is not None
        added = DataFile(str(own.parent), own.name, own.as_uri(), own.stat().st_size, "")
        catalog.commit(Table(RECIPE, "stages", _schema(small.root)), state, (added,), (), {})
    done = refinery("verify", small.root, "--catalog", address)
    assert done.returncode == ContractError.exit_code
    assert "own.parquet" in done.stdout
    assert "--repair" in done.stdout
    with pytest.raises(ContractError, match=r"own\.parquet.*--repair"):
        registered(small.root, address)
    assert refinery("register", small.root, "--repair").returncode == 0
    assert summary(address, RECIPE) == before
    assert refinery("verify", small.root, "--catalog", address).returncode == 0


def _schema(root: str) -> "object":
    version = version_log.current(root, RECIPE, DAYS[0])
    return tables_of(root, version, HERE).tables["stages"][0].schema


def test_a_table_that_is_gone_is_made_again(small: SmallRoot, address: str, refinery: Refinery) -> None:
    registered(small.root, address)
    before = summary(address, RECIPE)
    with opened(address) as catalog:
        catalog.drop(RECIPE, "rejects")
    done = refinery("verify", small.root, "--catalog", address)
    assert done.returncode == ContractError.exit_code
    assert "rejects: is not in the catalog" in done.stdout
    assert refinery("register", small.root).returncode == 0
    assert summary(address, RECIPE) == before


def test_a_lost_catalog_is_made_again(small: SmallRoot, address: str, tmp_path: Path) -> None:
    registered(small.root, address)
    before = summary(address, RECIPE)
    shutil.rmtree(tmp_path / "catalog")
    (tmp_path / "catalog").mkdir()
    registered(small.root, address)
    assert summary(address, RECIPE) == before


def test_a_root_that_moved_is_refused_until_it_is_repaired(small: SmallRoot, address: str, tmp_path: Path) -> None:
    registered(small.root, address)
    other = str(Path(small.root).rename(tmp_path / "moved"))
    with pytest.raises(RecipeError, match=r"is of .*root.*--repair"):
        registered(other, address)
    registered(other, address, repair=True)
    assert {state.properties[ROOT] for state in states(address, RECIPE).values()} == {other}
    assert all(_is_there(each) for state in states(address, RECIPE).values() for each in state.files)


def test_a_root_has_one_name(small: SmallRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(small.root)
    monkeypatch.chdir(tmp_path)
    folder = Path(small.root).name
    ways = ("link", f"{folder}/", f"../{tmp_path.name}/./{folder}", f"file://{small.root}", small.root)
    assert {plain_root(way) for way in ways} == {small.root}
    assert plain_root("s3://bucket/root") == "s3://bucket/root"


def test_the_other_of_two_writers_looks_again(small: SmallRoot, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(address) as catalog:
        commit, calls = type(catalog).commit, []

        def late(self: object, *given: object) -> None:
            calls.append(given)
            if len(calls) == 1:
                registered(small.root, address)  # another one, in between
            commit(self, *given)  # type: ignore[arg-type]

        monkeypatch.setattr(type(catalog), "commit", late)
        [first, *_] = register(small.root, RECIPE, catalog, HERE)
    assert first.commits == 0
    monkeypatch.undo()


def test_who_is_always_late_gives_up_with_the_way_out(small: SmallRoot, address: str) -> None:
    with opened(address) as catalog, pytest.MonkeyPatch.context() as patch:

        def never(self: object, *given: object) -> None:
            del self, given
            raise Changed

        patch.setattr(type(catalog), "commit", never)
        with pytest.raises(Exception, match="again and again"):
            register(small.root, RECIPE, catalog, HERE)


KILLED = """
    import os, signal, sys
    from pipeline_tasks.engines.each import HERE
    from refinery_exports.tables.catalogs import opened
    from refinery_exports.tables.registering import register

    root, recipe, address, at, side = sys.argv[1:]
    with opened(address) as catalog:
        commit, calls = type(catalog).commit, []

        def killed(self, *given):
            calls.append(given)
            here = len(calls) == int(at)
            if here and side == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            commit(self, *given)
            if here:
                os.kill(os.getpid(), signal.SIGKILL)

        type(catalog).commit = killed
        register(root, recipe, catalog, HERE)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "side"),
    [
        pytest.param(at, side, marks=() if (at, side) in ((1, "after"), (6, "before")) else pytest.mark.nightly)
        for at in range(1, 9)
        for side in ("before", "after")
    ],
)
def test_a_kill_between_root_and_catalog_is_repaired(
    small: SmallRoot, kind: str, at: int, side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refinery: Refinery
) -> None:
    address = catalog_at(kind, tmp_path / "catalog", monkeypatch)
    arguments = [small.root, RECIPE, address, str(at), side]
    done = subprocess.run([sys.executable, "-c", dedent(KILLED), *arguments], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]
    whole = clean(small.root, kind, tmp_path / "clean", monkeypatch)
    for name, (_, files) in summary(address, RECIPE).items():
        assert files <= whole[name][1]  # nothing that is not published
    assert refinery("register", small.root, "--recipe", RECIPE).returncode == 0
    assert summary(address, RECIPE) == whole
    assert refinery("verify", small.root, "--catalog", address).returncode == 0


def test_the_command_that_compares_is_whole(small: SmallRoot, tmp_path: Path, refinery: Refinery) -> None:
    lake = f"ducklake:sqlite:{tmp_path}/a lake.sqlite"
    done = refinery("register", small.root, "--recipe", RECIPE, "--catalog", lake)
    [named] = re.findall("^  refinery (.*)$", done.stdout, re.MULTILINE)
    assert shlex.split(named) == ["verify", small.root, "--recipe", RECIPE, "--catalog", lake]
    assert refinery(*shlex.split(named)).returncode == 0


def test_a_catalog_of_no_kind_is_refused(small: SmallRoot, refinery: Refinery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFINERY_CATALOG", raising=False)
    for catalog, named in (("icebrg:lake", "iceberg"), ("lake", "REFINERY_CATALOG"), ("", "REFINERY_CATALOG")):
        done = refinery("register", small.root, "--catalog", catalog)
        assert done.returncode == RecipeError.exit_code
        assert named in done.stderr
    done = refinery("register", small.root, "--recipe", "smal", "--catalog", "iceberg:lake")
    assert done.returncode == RecipeError.exit_code
    assert f"'{RECIPE}'" in done.stderr


@pytest.mark.parametrize("days", [1, 2])
def test_one_version_asks_for_what_is_its_own(
    small: SmallRoot, address: str, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a version costs does not grow with the versions before it: its own files are listed, and no others."""
    from refinery_exports.tables import registering

    asked: list[str] = []
    real: Callable[..., object] = registering.tables_of

    def counted(root: str, version: object, on: object) -> object:
        asked.append(version.snapshot)  # type: ignore[attr-defined]
        return real(root, version, on)

    monkeypatch.setattr(registering, "tables_of", counted)
    with opened(address) as catalog:
        for day in DAYS[:days]:
            register_version(small.root, version_log.current(small.root, RECIPE, day), catalog, HERE)
    assert asked == list(DAYS[:days])


def test_settings_name_each_kind(tmp_path: Path) -> None:
    assert {settings_of(kind, tmp_path / kind)[0].partition(":")[0] for kind in KINDS} == {*KINDS}


@pytest.mark.slow
def test_a_run_registers_what_it_publishes(
    small_root: SmallRoot, address: str, refinery: Refinery, tmp_path: Path
) -> None:
    """A recipe that names a catalog has its version there when the run ends; the run says so."""
    recipe = {"name": "own", "stages": {"ingest": {}, "extract": {}}, "run": {"catalog": address}}
    (own := tmp_path / "own.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
    root = str(tmp_path / "root")
    accepts = [word for name in ("ingest", "extract", "publish") for word in ("--override", f"{name}=a test")]
    landed = str(small_root.landing / DAYS[0])
    done = refinery(
        "run", root, "--input", landed, "--snapshot", DAYS[0], "--recipe", own, "--engine", "local", *accepts
    )
    assert done.returncode == 0, done.stderr
    assert f"in {address}" in done.stdout + done.stderr
    version = version_log.current(root, "own", DAYS[0])
    kept = states(address, "own")["kept"]
    assert sum(kept.files.values()) == funnel(root, version)[-1]["rows"]
    assert kept.last[VERSION] == str(version.number)
    trial = ("--sample", "0.9")
    done = refinery(
        "run", root, "--input", landed, "--snapshot", DAYS[0], "--recipe", own, "--engine", "local", *accepts, *trial
    )
    assert done.returncode == 0, done.stderr
    assert not states(address, trial_of("own"))  # no takedown would be followed there


def _take_down(small: SmallRoot, refinery: Refinery) -> None:
    """Take down a document of the first day, of which the catalog is not told."""
    first = version_log.versions(small.root, RECIPE)[0]
    _, files = tables_of(small.root, first, HERE).tables["kept"]
    gone = str(pq.read_table(Path(small.root, files[0].path), columns=["id"])["id"][0])
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("REFINERY_CATALOG")  # no catalog follows
        assert refinery("takedown", small.root, "--document", gone, "--reason", "a test").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("is_registered_between", [True, False])
def test_who_is_taken_down_of_a_retracted_snapshot_is_in_no_past(
    small: SmallRoot, address: str, refinery: Refinery, *, is_registered_between: bool
) -> None:
    """The table has no row of the document any more when it is taken down; its past has."""
    registered(small.root, address)
    version_log.retract(small.root, RECIPE, DAYS[0], "a test")
    if is_registered_between:
        registered(small.root, address)
        assert states(address, RECIPE)["kept"].snapshots > 1
    _take_down(small, refinery)
    done = refinery("verify", small.root, "--catalog", address)
    assert (done.returncode, "before a takedown" in done.stdout) == (ContractError.exit_code, True)
    registered(small.root, address)
    assert {state.snapshots for state in states(address, RECIPE).values()} == {1}
    assert refinery("verify", small.root, "--catalog", address).returncode == 0


@pytest.mark.slow
def test_a_kill_before_snapshots_are_forgotten_is_repaired(
    small: SmallRoot, address: str, refinery: Refinery, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(small.root, address)
    _take_down(small, refinery)

    def killed(self: object, *given: object) -> int:
        raise KeyboardInterrupt

    with opened(address) as catalog, pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(catalog), "expire", killed)
        with pytest.raises(KeyboardInterrupt):
            register(small.root, RECIPE, catalog, HERE)
    assert max(state.snapshots for state in states(address, RECIPE).values()) > 1
    registered(small.root, address)
    assert {state.snapshots for state in states(address, RECIPE).values()} == {1}


@pytest.mark.slow
def test_a_lake_forgets_a_table_of_before_a_takedown_that_was_dropped(
    small: SmallRoot, refinery: Refinery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers of a lake can ask for a table that was dropped, by a snapshot of the lake."""
    address = catalog_at("ducklake", tmp_path / "catalog", monkeypatch)
    registered(small.root, address)
    with opened(address) as catalog:
        catalog.drop(RECIPE, "kept")
    _take_down(small, refinery)
    registered(small.root, address)
    with closing(sqlite3.connect(tmp_path / "catalog" / "lake.sqlite")) as lake:
        assert lake.execute("SELECT count(*) FROM ducklake_table WHERE table_name = 'kept'").fetchone() == (1,)


@pytest.mark.slow
@pytest.mark.parametrize("is_alone", [True, False])
def test_what_leaves_a_root_while_it_is_registered_leaves_the_tables(
    small: SmallRoot, address: str, refinery: Refinery, *, is_alone: bool
) -> None:
    """A registration that began before a takedown and a retraction, which others registered, does not undo these."""
    from refinery_exports.tables import registering

    registered(small.root, address)
    with opened(address) as catalog:
        catalog.drop(RECIPE, "kept")
    real, calls = registering.tables_of, []

    def slow(root: str, version: object, on: object) -> object:
        held = real(root, version, on)  # type: ignore[arg-type]
        calls.append(version)
        if len(calls) == 1:
            _take_down(small, refinery)
            version_log.retract(small.root, RECIPE, DAYS[1], "a test")
            registered(small.root, address)
        return held

    version = version_log.current(small.root, RECIPE, DAYS[1])
    with opened(address) as catalog, pytest.MonkeyPatch.context() as patch:
        patch.setattr(registering, "tables_of", slow)
        if is_alone:
            register_version(small.root, version, catalog, HERE)
        else:
            register(small.root, RECIPE, catalog, HERE)
    assert refinery("verify", small.root, "--catalog", address).stdout.endswith("nothing else\n")
    assert {state.snapshots for state in states(address, RECIPE).values()} == {1}


def test_a_version_that_keeps_nothing_takes_the_files_of_the_one_before(
    small: SmallRoot, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_exports.tables import registering

    registered(small.root, address)
    version = version_log.current(small.root, RECIPE, DAYS[0])
    held = tables_of(small.root, version, HERE)
    table, files = held.tables["kept"]
    nothing = replace(held, tables={**held.tables, "kept": (table, ())})
    monkeypatch.setattr(registering, "tables_of", lambda root, version, on: nothing)  # noqa: ARG005 -- as it is called
    with opened(address) as catalog:
        register_version(small.root, version, catalog, HERE)
    left = states(address, RECIPE)["kept"]
    assert left.files
    assert not {file.address for file in files} & left.files.keys()
    assert (left.last[VERSION], left.last[SNAPSHOT]) == (str(version.number), version.snapshot)


@pytest.mark.parametrize("name", ["tables.json", "kept"])
def test_a_file_that_is_gone_is_told_with_the_way_to_write_it_again(
    small: SmallRoot, address: str, refinery: Refinery, name: str
) -> None:
    folder = Path(place_of(small.root, version_log.current(small.root, RECIPE, DAYS[0]), ()))
    gone = next(path for path in folder.rglob("*") if path.is_file() and name in str(path.relative_to(folder)))
    before = gone.read_bytes()
    gone.unlink()
    with pytest.raises(ContractError, match=r"remove the folder|refinery verify"):
        registered(small.root, address)
    assert f"remove the folder {folder}" in refinery("verify", small.root).stdout
    shutil.rmtree(folder)
    registered(small.root, address)
    assert gone.read_bytes() == before


@pytest.mark.parametrize("name", [VERSION, SNAPSHOT, names.MANIFEST, HEAD])
def test_a_commit_that_lies_about_its_version_is_found_and_repaired(
    small: SmallRoot, address: str, refinery: Refinery, name: str
) -> None:
    registered(small.root, address)
    version = version_log.current(small.root, RECIPE, DAYS[1])
    table, files = tables_of(small.root, version, HERE).tables["kept"]
    with opened(address) as catalog:
        for add, remove, lie in (((), (files[0].address,), {}), (files[:1], (), {name: "lie"})):
            state = catalog.state(RECIPE, "kept")
            assert state is not None
            said = {each: value for each, value in state.last.items() if each.startswith("refinery.")}
            catalog.commit(table, state, add, remove, said | lie)
    done = refinery("verify", small.root, "--catalog", address)
    assert (done.returncode, "is lie" in done.stdout) == (ContractError.exit_code, True)
    assert refinery("register", small.root, "--repair").returncode == 0
    assert refinery("verify", small.root, "--catalog", address).returncode == 0


def test_the_next_version_brings_what_was_taken_down_meanwhile(
    small: SmallRoot, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refinery: Refinery
) -> None:
    """Whoever takes down may not know of the catalog: its tables lose the document, whichever snapshot it is of."""
    address = catalog_at(kind, tmp_path / "catalog", monkeypatch)
    monkeypatch.delenv("REFINERY_CATALOG")
    registered(small.root, address)
    before = states(address, RECIPE)["kept"]
    day = f"select id from kept where snapshot = '{DAYS[0]}' order by id limit 1"
    gone = refinery("sql", small.root, "--version", DAYS[0], day, "--format", "csv").stdout.split()[-1]
    assert refinery("takedown", small.root, "--document", gone, "--reason", "a test").returncode == 0
    assert states(address, RECIPE)["kept"].files == before.files
    with opened(address) as catalog:
        register_version(small.root, version_log.current(small.root, RECIPE, DAYS[1]), catalog, HERE)
    after = states(address, RECIPE)["kept"]
    assert sum(after.files.values()) == sum(before.files.values()) - 1
    assert (after.snapshots, after.past) == (1, ())
    assert refinery("verify", small.root, "--catalog", address).returncode == 0


def test_a_recipe_by_its_name_says_which_catalog_follows(
    small: SmallRoot, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refinery: Refinery
) -> None:
    address = catalog_at(kind, tmp_path / "catalog", monkeypatch)
    monkeypatch.delenv("REFINERY_CATALOG")
    registered(small.root, address)
    before = states(address, RECIPE)["kept"]
    recipe = {"name": RECIPE, "stages": {"ingest": {}, "extract": {}}, "run": {"catalog": address}}
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / f"{RECIPE}.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
    monkeypatch.setattr("refinery_exports.tables.following.RECIPES", folder)
    gone = refinery("sql", small.root, "select id from kept order by id limit 1", "--format", "csv").stdout.split()[-1]
    done = refinery("takedown", small.root, "--document", gone, "--reason", "a test")
    assert f"{RECIPE}.kept" in done.stdout
    assert sum(states(address, RECIPE)["kept"].files.values()) == sum(before.files.values()) - 1
