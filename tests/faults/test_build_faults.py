"""A build that is killed, that meets a refining run, or whose store is busy: whole versions, and the same bytes."""

import random
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import StorageBusy
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.publish.datasets.published_shards import named_files
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from tests import small_build
from tests.chain import PROJECT, reply
from tests.faults.build_victim import main
from tests.faults.forked import ended, forked
from tests.faulty_s3 import Fault, FaultyS3
from tests.small_build import DATASET, build, copied
from tests.small_root import DAYS, SmallRoot, refine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

KILLS = 9

MOMENTS = ("before", "inside", "after")

EVERY_KILL = [
    pytest.param(kill, marks=pytest.mark.nightly if kill in range(1, KILLS - 2) else ()) for kill in range(KILLS)
]
"""One kill before the first writes, one in each moment of the last ones; the others are nightly."""


def published(small: SmallRoot, number: int = -1) -> dict[str, bytes]:
    """The files of a version by their path; of the newest, unless another is named."""
    version = version_log.versions(small.root, DATASET)[number]
    store = storage.connect(small.root)
    return {file.path: store.read(file.path) for file in named_files(small.root, version)}


@pytest.fixture(scope="module")
def two_days(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    """A root with two of three days."""
    small = replace(small_root, root=str(tmp_path_factory.mktemp("days") / "root"))
    for day in DAYS[:2]:
        refine(small, day)
    return small


@pytest.fixture(scope="module")
def quiet(two_days: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """The files of a build that nobody disturbed."""
    small = copied(two_days, tmp_path_factory.mktemp("quiet"))
    build(small)
    return published(small)


@pytest.fixture(scope="module")
def writes(two_days: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many objects a build writes."""
    folder = tmp_path_factory.mktemp("counted")
    small, log = copied(two_days, folder), folder / "log"
    assert ended(forked(main, small.root, str(small.landing), log=log)) == 0, log.read_text()
    return int(log.read_text())


@pytest.mark.parametrize("kill", EVERY_KILL)
def test_a_killed_build_shows_nothing_half_written_and_is_the_same_when_run_again(
    kill: int, two_days: SmallRoot, quiet: Mapping[str, bytes], writes: int, tmp_path: Path
) -> None:
    small, log = copied(two_days, tmp_path), tmp_path / "log"
    share = (kill // len(MOMENTS) + random.Random(kill).random()) / (KILLS // len(MOMENTS))
    moment, at = MOMENTS[kill % len(MOMENTS)], str(int(share * writes))
    struck = ended(forked(main, small.root, str(small.landing), moment, at, log=log))
    print(f"killed {moment} write {at} of {writes}: exit {struck}")
    assert struck == -signal.SIGKILL, log.read_text()
    assert verify(small.root).findings.problems == []
    build(small)
    assert published(small) == quiet
    assert len(version_log.versions(small.root, DATASET)) == 1
    assert verify(small.root).findings.problems == []


def test_builds_beside_a_refining_run_see_whole_versions(
    two_days: SmallRoot, quiet: Mapping[str, bytes], tmp_path: Path
) -> None:
    small = copied(two_days, tmp_path)
    asked = f"small_root.refine(small_root.SmallRoot({small.root!r}, Path({str(small.landing)!r})), {DAYS[2]!r})"
    program = f"from pathlib import Path\nfrom tests import small_root\n{asked}"
    with subprocess.Popen([sys.executable, "-c", program], cwd=PROJECT) as refining:
        while refining.poll() is None:
            build(small)
    assert refining.returncode == 0
    build(small)
    versions = version_log.versions(small.root, DATASET)
    composed = [read_manifest(small.root, version.manifests["compose"]).params["versions"] for version in versions]
    assert [[part["snapshot"] for part in parts] for parts in composed] == [list(DAYS[:2]), list(DAYS)]
    assert published(small, 0) == quiet
    assert verify(small.root).findings.problems == []


@pytest.fixture
def in_s3(two_days: SmallRoot, s3_root: str) -> SmallRoot:
    """The two days in a store of objects; test_acceptance.py says that a run stores the same there."""
    here, there = Path(two_days.root), storage.connect(s3_root)
    files = [path for path in here.rglob("*") if path.is_file() and not path.name.startswith("ledger.sqlite")]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: there.create(str(path.relative_to(here)), path.read_bytes()), files))
    return replace(two_days, root=s3_root)


BUSY: Mapping[str, list[tuple[str, Fault]]] = {
    "throttled": [(method, (503, "SlowDown")) for method in ("GET", "GET", "PUT", "PUT", "GET", "PUT", "GET", "PUT")],
    "a bad network": [("GET", "short_body"), ("PUT", "lost_answer"), ("GET", "lost_request"), ("PUT", (500, "Error"))],
}


@pytest.mark.parametrize("kind", sorted(BUSY))
def test_a_build_waits_for_a_busy_store_and_goes_on(
    kind: str, in_s3: SmallRoot, faults: FaultyS3, quiet: Mapping[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[dict[str, Any]]()
    storage.connect(in_s3.root).create("asked", b"once")  # whether the server heeds conditions
    faults.coming += BUSY[kind]

    def reply_with_its_waits(verb: str, **fields: object) -> dict[str, Any]:
        done = reply(verb, **fields)
        waits.append(done.get("s3_waits", {"requests": 0, "seconds": 0.0}))
        return done

    monkeypatch.setattr(small_build, "reply", reply_with_its_waits)
    build(in_s3)
    assert faults.happened == BUSY[kind]
    assert sum(wait["requests"] for wait in waits) == len(BUSY[kind])
    assert [wait for wait in waits if (wait["seconds"] > 0) != (wait["requests"] > 0)] == []
    assert published(in_s3) == quiet


def test_a_store_that_stays_busy_stops_a_build_which_goes_on_when_it_is_run_again(
    in_s3: SmallRoot, faults: FaultyS3, quiet: Mapping[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow runs the task again, after a while; a person runs the command again."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    faults.coming += [("PUT", (503, "SlowDown"))] * 6
    for _ in range(3):
        with pytest.raises(StorageBusy, match=re.escape(in_s3.root)):
            build(in_s3)
        assert version_log.versions(in_s3.root, DATASET) == []
    build(in_s3)
    assert faults.coming == []
    assert published(in_s3) == quiet
