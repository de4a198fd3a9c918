"""A summary has the numbers of its manifests, is stored by publishing, and is computed where it is lost or damaged."""

import json
import shutil
from pathlib import Path

import pytest

from pipeline_tasks.gate.verdicts import read_verdict
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.report import summary
from pipeline_tasks.stages.ingest import NO_PAGE
from pipeline_tasks.store.reading import read_manifest
from tests.small_root import DAYS, RECIPE, STAGES, SmallRoot


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path) -> str:
    summary.forget()
    return str(shutil.copytree(small_root.root, tmp_path / "root"))


def newest(root: str) -> Version:
    return version_log.current(root, RECIPE, DAYS[1])


def stored(root: str, version: Version) -> Path:
    return Path(root, summary.summary_path(RECIPE, version.manifests, version.verdicts))


def test_a_summary_has_the_numbers_of_the_manifests(root: str) -> None:
    version = newest(root)
    read = summary.read_summary(root, version)
    assert [stage.stage for stage in read.stages] == list(STAGES)
    ingested = read_manifest(root, version.manifests["ingest"]).rejected
    assert read.stages[0].no_page == sum(ingested.get(reason, 0) for reason in NO_PAGE)
    for stage in read.stages:
        manifest = read_manifest(root, version.manifests[stage.stage])
        assert (stage.rows_in, stage.rows, stage.bytes_in) == (manifest.rows_in, manifest.rows, manifest.bytes_in)
        assert stage.rows_in == stage.rows + stage.rejected + stage.quarantined or stage.stage == "pack"
        assert stage.history == manifest.parents[1:]
        path = version.verdicts.get(stage.stage, "")
        assert stage.outcome == (read_verdict(root, path).outcome if path else "")
    assert read.outcome == read_verdict(root, version.verdicts["publish"]).outcome
    assert read.stages[-1].tokens == version.tokens
    chars = read_manifest(root, version.manifests["dedup_exact"]).metrics["kept"]["chars"]
    assert read.mean("chars") == pytest.approx(chars["sum"] / chars["count"])
    assert read.mean("nothing") is None


def test_publishing_stores_the_summary_of_every_version(root: str) -> None:
    versions = version_log.versions(root, RECIPE)
    assert versions
    assert [version.number for version in versions if not stored(root, version).exists()] == []


@pytest.mark.parametrize("body", [None, b"", b"{}\n", b"[]", b'{"stages": 3}'])
def test_a_lost_or_damaged_summary_is_computed(body: bytes | None, root: str) -> None:
    version = newest(root)
    path = stored(root, version)
    whole = summary.read_summary(root, version)
    summary.forget()
    if body is None:
        path.unlink()
    else:
        path.write_bytes(body)
    assert summary.read_summary(root, version) == whole


def test_a_changed_number_is_not_shown(root: str) -> None:
    version = newest(root)
    path = stored(root, version)
    fields = json.loads(path.read_text())
    fields["stages"][0]["rows"] += 1
    path.write_text(json.dumps(fields))
    assert summary.read_summary(root, version) == summary.summarize(root, version.manifests, version.verdicts)


def test_a_summary_in_the_place_of_another_is_not_shown(root: str) -> None:
    """Two whole summaries are exchanged: each names what it summarizes, so that both are computed."""
    versions = [version_log.current(root, RECIPE, day) for day in DAYS[:2]]
    whole = [summary.read_summary(root, version) for version in versions]
    assert whole[0] != whole[1]
    first, second = (stored(root, version) for version in versions)
    bodies = first.read_bytes(), second.read_bytes()
    first.write_bytes(bodies[1])
    second.write_bytes(bodies[0])
    summary.forget()
    assert [summary.read_summary(root, version) for version in versions] == whole


def test_an_override_counts_where_the_gate_refuses(root: str) -> None:
    """The verdicts of the first day carry an override each; only those of refused gates were needed."""
    version = version_log.current(root, RECIPE, DAYS[0])
    needed = {
        gate
        for gate, path in version.verdicts.items()
        if path and any(failure.severity == "critical" for failure in read_verdict(root, path).failures)
    }
    assert summary.read_summary(root, version).overrides.keys() == needed


def test_means_are_those_of_the_profiled_values() -> None:
    import pyarrow as pa

    batch = pa.record_batch({"whole": [1, 2, 6], "ratio": [0.25, 0.75, 0.5], "name": ["a", "b", "b"]})
    profiles = profile(batch, ("whole", "ratio", "name"))
    assert summary.mean_of(profiles["whole"]) == 3
    assert summary.mean_of(profiles["ratio"]) == pytest.approx(0.505), "each hundredth counts as its middle"
    assert summary.mean_of(profiles["name"]) is None
