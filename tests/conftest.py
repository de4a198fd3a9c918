"""Fixtures that every test may use."""

import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from pipeline_tasks import stages
from pipeline_tasks.run.tasks import states
from pipeline_tasks.store import storage
from pipeline_tasks.store.s3.client import s3_client
from tests import cloud_servers, ports
from tests import mixed_root as mixed_roots
from tests import small_root as small_roots
from tests.commands import Refinery
from tests.embedded import embed_here
from tests.faulty_s3 import FaultyS3, faulty_s3
from tests.offspring import installed as installed_offspring
from tests.s3_server import S3Server
from tests.s3_server import s3_server as running_s3_server
from tests.toys import CARDS, MODULES

pytest_plugins = ["tests.order", "tests.durations"]

EVERYWHERE = settings(settings.get_profile("default"), deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No verdict depends on how busy the machine is, nor on its being CI's."""

settings.register_profile("ci", EVERYWHERE, max_examples=50, derandomize=True)
settings.register_profile("quick", EVERYWHERE, max_examples=12, derandomize=True)
settings.register_profile("nightly", EVERYWHERE, max_examples=500, print_blob=True)
settings.load_profile("ci")  # `pytest --hypothesis-profile` takes another

words_of_the_project = providers._get_local_constants


def _constants() -> Constants:
    """Return what Hypothesis draws beside its random values: nothing of the project where examples are the same each time.

    It draws the words and numbers in every module that was imported by then, and which those are the order of tests says.
    """
    return Constants() if (settings.default or EVERYWHERE).derandomize else words_of_the_project()


providers._get_local_constants = _constants


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name compressed bytes by their number: they carry the time, and every worker must name a test the same."""
    return f"{len(val)} bytes" if isinstance(val, bytes) and val[:2] == b"\x1f\x8b" else None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real crawl data that is next to the project on some machines; tests that need it skip elsewhere."""
    place = Path(os.environ.get("REFINERY_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not place.is_dir():
        pytest.skip(f"no crawl data at {place}: set REFINERY_SHARED_DATA to run this test")
    return place


@pytest.fixture(scope="session")
def airflow_here(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Airflow's environment, in this process: every test that imports Airflow needs it, in whatever order they run."""
    embed_here(tmp_path_factory.mktemp("airflow"))


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is logged from warnings on, also after a test has set Airflow's level in this process."""
    caplog.set_level(logging.WARNING)
    return caplog


@pytest.fixture
def refinery(airflow_here: None, capfd: "pytest.CaptureFixture[str]") -> Refinery:
    """The command `refinery`, which runs in this process."""
    return Refinery(capfd)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that refuses connections as long as the test runs."""
    with ports.closed_port() as port:
        yield port


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server of this test session; `s3_root` points this process at it."""
    with running_s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3_root(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of an empty prefix in a new bucket; this process and its children find the server by environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    bucket = f"refinery-{uuid4().hex[:12]}"
    s3_client().create_bucket(Bucket=bucket)
    return f"s3://{bucket}/root"


@pytest.fixture
def faults(s3_root: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    """A proxy before the S3 server that does what a test asks of it; this process speaks to the server through it."""
    with faulty_s3(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture
def gs_root(s3_root: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """As `s3_root`, for a bucket that answers as Google Cloud Storage does."""
    with cloud_servers.google(s3_server.endpoint, monkeypatch):
        yield s3_root.replace("s3://", "gs://")


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of Azure's Blob Storage, of this test session; skipped where it is not installed."""
    with cloud_servers.azurite(tmp_path_factory.mktemp("azurite")) as endpoint:
        yield endpoint


@pytest.fixture
def az_root(azurite: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of an empty prefix in a new container; this process and its children find it by environment."""
    return cloud_servers.azure_root(azurite, monkeypatch)


@pytest.fixture
def any_bucket(request: pytest.FixtureRequest) -> str:
    """An empty root of the kind that a test is parametrized by, indirectly."""
    return str(request.getfixturevalue(f"{request.param}_root"))


@pytest.fixture(params=["local", "s3", "gs", "az"])
def any_root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty root in every kind of store, one after the other."""
    new: Callable[[], str] = {
        "local": lambda: str(tmp_path / "root"),
    }.get(request.param, lambda: str(request.getfixturevalue(f"{request.param}_root")))
    return new()


@contextmanager
def only_read(folder: Path) -> Iterator[None]:
    """Refuse a session whose tests changed `folder`: what they left there fails other tests, in some orders only."""
    before = _stamps(folder)
    yield
    changed = {str(path) for path, _, _ in before ^ _stamps(folder)}
    assert sorted(changed) == []


def _stamps(folder: Path) -> set[tuple[Path, int, int]]:
    return {(path, path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[small_roots.SmallRoot]:
    """A root with every kind of object; tests that change it work on a copy."""
    small = small_roots.build(tmp_path_factory.mktemp("small"))
    with only_read(Path(small.root)):
        yield small


@pytest.fixture(scope="session")
def mixed_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root of days in several languages and of many sites; tests only read it."""
    mixed = mixed_roots.build(tmp_path_factory.mktemp("mixed"))
    with only_read(mixed):
        yield mixed


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy stages of `tests.toys`, as stages that recipes and requests may name."""
    monkeypatch.setattr(stages, "NAMES", (*stages.NAMES, *(card.name for card in CARDS)))
    for name, module in MODULES.items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture(scope="module")
def offspring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The toy stages of `tests.offspring`, as a package brings them."""
    with installed_offspring(tmp_path_factory.mktemp("packages") / "site"):
        yield


@pytest.fixture(scope="session")
def workers_find_tests() -> None:
    """Let processes that this one starts import `tests` and `pipeline_tasks`."""
    root = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture(scope="session")
def spark(workers_find_tests: None) -> Iterator[str]:
    """The address of the one Spark of this test session, which starts at its first use."""
    yield "local[2]"
    if "pyspark" in sys.modules:
        from refinery_spark.spark import stop

        stop()


@pytest.fixture(scope="session")
def ray(workers_find_tests: None) -> Iterator[str]:
    """The address of the one Ray of this test session, which starts at its first use."""
    yield "local"
    if "ray" in sys.modules:
        from refinery_ray.ray import stop

        stop()


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many bytes of each file were read to hash it, or to copy it here; nothing is known of any file before."""
    seen = Counter[str]()
    opened = storage.open_landed

    class Noted:
        def __init__(self, uri: str) -> None:
            self._uri, self._stream = uri, opened(uri)

        def read(self, size: int = -1) -> bytes:
            part = self._stream.read(size)
            seen[self._uri] += len(part)
            return part

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self._stream.close()

    monkeypatch.setattr(storage, "open_landed", Noted)
    storage._digest.cache_clear()
    return seen


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """No state waits in this process."""
    monkeypatch.setattr(states, "_waiting", [])
