"""What an upgrade makes outdated is what a run refines again, and is said before it does."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks import libraries
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.preflight import PlannedRun, upgrade
from pipeline_tasks.inspect.versions.outdated import outdated, outdated_snapshot
from pipeline_tasks.manifest import dump, identified, manifest_path
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.sealed import path_of, sha256
from pipeline_tasks.store import storage
from pipeline_tasks.upkeep.doctor import checks
from tests.chain import Chain, How, refined

RECIPE = {
    "name": "tiny",
    "stages": {
        "ingest": {},
        "extract": {"min_chars": 20},
        "filter_language": {"keep": ["en"], "threshold": 0.1},
        "dedup_exact": {"buckets": 1},
        "scrub_pii": {},
    },
}
TEXT = "The ferry left the harbor before the fog had lifted, and nobody remembered the name of its captain."
DAY = "2026-11-20"


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    (tmp_path / DAY).mkdir()
    (tmp_path / DAY / "a.jsonl").write_text(json.dumps({"text": TEXT, "url": "https://example.org/1"}) + "\n")
    (tmp_path / "tiny.yaml").write_text(json.dumps(RECIPE))
    return again(tmp_path)


def again(folder: Path) -> Chain:
    return refined(str(folder / "root"), str(folder / DAY), How(str(folder / "tiny.yaml")))


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that lets another version of a library be installed."""
    known = libraries._version
    versions: dict[str, str] = {}
    monkeypatch.setattr(libraries, "_version", lambda name: versions.get(name) or known(name))
    return lambda name: versions.update({name: "0.0.1"})


@pytest.mark.parametrize(
    ("library", "first"), [("ftfy", "extract"), ("publicsuffixlist", "dedup_exact"), ("phonenumbers", "scrub_pii")]
)
def test_what_is_outdated_is_what_a_run_refines_again(
    tmp_path: Path, chain: Chain, other: Any, library: str, first: str
) -> None:
    assert outdated(chain.root, chain.version).stages == ()
    other(library)
    found = outdated(chain.root, chain.version)
    assert (found.stages[0].stage, found.stages[0].follows) == (first, "")
    assert [reason.split()[0] for reason in found.stages[0].reasons] == [library]
    assert all(stage.seconds is not None and stage.stores for stage in found.stages)
    after = again(tmp_path)
    changed = [
        stage for stage in chain.version.manifests if after.version.manifests[stage] != chain.version.manifests[stage]
    ]
    assert sorted(stage.stage for stage in found.stages) == sorted(changed)
    assert sorted(found.current) == sorted(chain.version.manifests.keys() - set(changed))
    assert after.rows("scrub_pii") == chain.rows("scrub_pii")
    assert outdated(chain.root, after.version).stages == ()


def changed(chain: Chain, stage: str, **changes: Any) -> version_log.Version:
    """The version with another manifest of a stage, as a release that was another would have published it."""
    manifest = identified(replace(chain.manifest(stage), **changes))
    path = manifest_path(stage, manifest.fingerprint)
    storage.connect(chain.root).create(path, dump(manifest))
    return replace(chain.version, manifests={**chain.version.manifests, stage: path})


@pytest.mark.parametrize(
    ("stage", "changes", "named"),
    [
        ("extract", {"version": 1}, "version of the stage 1 → "),
        ("ingest", {"writer": "pyarrow-1.0 zstandard-1.0"}, "pyarrow-1 → pyarrow-"),
        ("extract", {"libraries": {}}, "ftfy none → "),
        ("filter_language", {"resources": {"0": "0" * 64}}, "lid.176.ftz is another file"),
        ("dedup_exact", {"params": {"buckets": 1, "no_more": 2}}, "not those of this release"),
        ("extract", {"params": {"min_chars": 20}}, "other settings: fallback, invisible"),
    ],
)
def test_each_thing_that_decides_rows_is_a_reason(chain: Chain, stage: str, changes: Any, named: str) -> None:
    found = outdated(chain.root, changed(chain, stage, **changes))
    reasons = {each.stage: each.reasons for each in found.stages}
    assert named in "\n".join(reasons[stage])


def test_of_files_only_the_packages_own_are_a_reason(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("evil.example\n")
    stages = {"ingest": {}, "filter_url": {"domains": str(tmp_path / "list")}}
    (tmp_path / DAY).mkdir()
    (tmp_path / DAY / "a.jsonl").write_text(json.dumps({"text": TEXT, "url": "https://example.org/1"}) + "\n")
    (tmp_path / "tiny.yaml").write_text(
        json.dumps({"name": "tiny", "stages": {"ingest": {}, "extract": {"min_chars": 20}} | stages})
    )
    made = again(tmp_path)
    listed = sha256((tmp_path / "list").read_bytes())
    (tmp_path / "list").unlink()
    assert outdated(made.root, made.version).stages == ()
    older = changed(made, "filter_url", resources={"0": listed, "1": "0" * 64})
    assert outdated(made.root, older).reasons == ["filter_url (public_suffix_list.dat is another file)"]


def test_a_version_of_a_format_that_is_not_read_is_named_and_ends_the_command(
    chain: Chain, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(chain.root, path_of(chain.version.manifests["extract"]))
    path.write_bytes(path.read_bytes().replace(b'"format":5', b'"format":9'))
    found = outdated_snapshot(chain.root, "tiny", DAY)
    assert found is not None
    assert str(path) in found.unreadable
    assert main(["keep", "upgrade", chain.root]) == ContractError.exit_code
    assert str(path) in capsys.readouterr().out
    assert [check.ok for check in checks(chain.root) if check.name == "upgrade"] == [False]


def test_the_command_says_which_stages_why_and_at_what_cost(
    chain: Chain, other: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["keep", "upgrade", chain.root]) == 0
    assert "tiny: 1 snapshot, 1 up to date, 0 outdated" in capsys.readouterr().out
    other("phonenumbers")
    assert main(["keep", "upgrade", chain.root, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    (version,) = facts["versions"]
    assert [stage["stage"] for stage in version["outdated"]] == ["scrub_pii"]
    assert facts["libraries"]["phonenumbers"] == "0.0.1"
    assert main(["keep", "upgrade", chain.root, "--recipe", "none"]) == RecipeError.exit_code
    assert [check.ok for check in checks(chain.root) if check.name == "upgrade"] == [True]


def test_a_root_without_versions_has_nothing_that_is_outdated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["keep", "upgrade", str(tmp_path)]) == 0
    assert f"{tmp_path} has no published version" in capsys.readouterr().out
    assert main(["keep", "upgrade", str(tmp_path / "none")]) == RecipeError.exit_code


def test_a_run_that_refines_again_says_so_first(tmp_path: Path, chain: Chain, other: Any) -> None:
    recipe = load_recipe(str(tmp_path / "tiny.yaml"))
    planned = PlannedRun(chain.root, (recipe,), input=str(tmp_path / DAY), snapshot=DAY)
    assert list(upgrade(planned, None)) == []
    other("ftfy")
    (note,) = upgrade(planned, None)
    assert not note.fault
    assert all(word in note.message for word in (DAY, "tiny", "ftfy", "extract", "refinery keep upgrade"))
    assert list(upgrade(replace(planned, snapshot="2026-11-21"), None)) == []
    assert list(upgrade(replace(planned, sample=0.5), None)) == []
