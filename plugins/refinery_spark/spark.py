"""The Spark engine: tasks run in `mapInArrow`, and grouped rows travel through Spark's own shuffle.

Shards are read and written by our own workers (no JVM-side S3 libraries); Spark moves tasks, receipts and, for `group`,
rows: keys with their columns (`key_tables`), and documents as bytes (`pieces`). A stage has dozens of verbs, so each is
one query of as few Spark stages as it can be: one for a map, two for a group.
"""

import atexit
import contextlib
import logging
import math
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pipeline_tasks.counted import counted
from pipeline_tasks.engines import job
from pipeline_tasks.engines.each import Call
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.engines.reach import require_answer
from pipeline_tasks.errors import JobLost, KernelFailed, RecipeError
from pipeline_tasks.recipe import Resources
from pipeline_tasks.run.history import History
from pipeline_tasks.run.runner import EngineFactory
from pipeline_tasks.run.shuffle import scatter, scatter_inputs
from pipeline_tasks.run.tasks.task import Task, kernel_name
from pipeline_tasks.run.tracker import Tracker, results_of
from pipeline_tasks.stage import Kernel, Shards
from refinery_spark.address import SUBMITTED, is_emr, spark_address
from refinery_spark.java import WAY_OUT, require_java
from refinery_spark.key_tables import FRAME, Scatter, frame_of, gather_keys, key_columns, key_rows
from refinery_spark.pieces import PIECE, PIECES_IN_ORDER, gather_pieces, scatter_pieces
from refinery_spark.task_batch import RESULT, BucketTasks, bucket_tasks, run_tasks, task_batch, unpickled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

log = logging.getLogger("refinery")

QUIET = Path(__file__).with_name("log4j2.properties")
"""Spark's own log: errors only."""

UNMEASURED = "-XX:-UsePerfData"
"""No file of counters in /tmp, which a killed JVM leaves there."""

QUICK = "-XX:TieredStopAtLevel=1"
"""Java's quick compiler alone: our JVM only moves bytes, and its thorough compiler took as long as all else it did."""

BATCH_BYTES, BATCH_ROWS = (f"spark.sql.execution.arrow.max{what}PerBatch" for what in ("Bytes", "Records"))

QUERY_SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    BATCH_BYTES: str(64 * 1024 * 1024),  # a row may be an Arrow stream of 32 MiB
    BATCH_ROWS: "4096",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}
"""Settings of queries, which a session of Spark Connect takes, too."""

UNBOUNDED = {BATCH_ROWS: "4"}
"""Settings where nothing bounds the bytes of a batch: before Spark 4.1, and on a server that refuses to."""

InArrow = partial[Iterator[pa.RecordBatch]]
"""What `mapInArrow` takes."""

UI = "REFINERY_SPARK_UI"
"""The variable that has the port of Spark's UI, which is off without it."""

EVENTS = "REFINERY_SPARK_EVENTS"
"""The variable that has the folder of Spark's event logs, which are off without it."""

SOCKET_FOLDER = 60
"""Longest path of a folder for sockets: Spark adds 43 characters, and macOS takes 103 in all (Linux 107)."""

LEAST_HEAP = 450
"""MiB below which Spark refuses to start an executor: one and a half times what it reserves (UnifiedMemoryManager)."""

GATEWAY = "PYSPARK_GATEWAY_PORT"
"""The variable by which `spark-submit` tells the Python process that it starts where its JVM is."""

ANY_RESOURCES = Resources()

_STARTING = threading.RLock()
"""Held while a session starts, so that whoever else needs it waits."""

_ACTIVE: dict[tuple[str, Resources], "SparkSession"] = {}
"""This process's session, by what it was asked for; a process has one at a time."""

TASK_BYTES = 4 * 1024 * 1024
"""A Spark task is worth its 10 ms of overhead for about this many stored bytes; lighter tasks of ours share one."""


class SparkEngine(LocalEngine):
    """Runs our tasks as Spark tasks on `master` (`local[N]`, `spark://host:port` or `sc://host:port`)."""

    def __init__(
        self,
        tracker: Tracker,
        history: History | None = None,
        *,
        master: str = "local[*]",
        resources: Resources = ANY_RESOURCES,
    ) -> None:
        super().__init__(tracker, history)
        self._session = partial(session, master, resources)

    def _each(self, tasks: Sequence[partial[Any]], weight: int) -> Iterator[Any]:
        with self._errors():
            parts = self._parts(len(tasks), weight)
            running = _named(_kernel_of(tasks), partial(run_tasks, task_batch(tasks, parts)))
            frame = self._frame(parts).mapInArrow(running, RESULT)
            return self._collect(frame, range(len(tasks)), _task_words(tasks))

    def group(self, kernel: Kernel, rows: Shards, *, by: str, order: Sequence[str] = (), buckets: int) -> Shards:
        """As the reference engine, with the rows shuffled by Spark: keys as rows of columns, all else as bytes."""
        tasks = self.tracker.group_tasks(kernel, rows, by, order, buckets)
        words = f"group by {by} into {counted(buckets, 'bucket')}, then {_kernel_words(kernel)}"

        def run_missing(missing: Sequence[int]) -> Iterator[Any]:
            with self._errors():
                shuffled = self._shuffled(rows, by, buckets, frozenset(missing))
                gathering = _named(_kernel_words(kernel), partial(shuffled.gather, bucket_tasks(tasks, by, order)))
                return self._collect(shuffled.frame.mapInArrow(gathering, RESULT), missing, words)

        return self.tracker.complete(tasks, run_missing)

    def _shuffled(self, rows: Shards, by: str, buckets: int, wanted: frozenset[int]) -> "Shuffled":
        """Return the rows of the wanted buckets, each bucket whole and in order in one partition."""
        weight, taken = sum(shard.weight for shard in rows), scatter_inputs(rows, buckets)
        parts, columns = self._parts(len(taken), weight), key_columns(self.tracker.finished, rows)
        scattering: InArrow
        gathering: Callable[[BucketTasks, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
        if columns and self._session().conf.get(BATCH_ROWS) != UNBOUNDED[BATCH_ROWS]:
            sent = task_batch([partial(key_rows, self.tracker.io, shards) for shards in taken], parts)
            scattering, schema = partial(Scatter(columns, by, buckets, wanted).run, sent), frame_of(columns)
            order, gathering = FRAME.names[:2], gather_keys
        else:
            sent = task_batch([partial(scatter, self.tracker.io, shards, by, buckets) for shards in taken], parts)
            scattering, schema = partial(scatter_pieces, sent, wanted), PIECE
            order, gathering = PIECES_IN_ORDER, gather_pieces
        scattered = self._frame(parts).mapInArrow(_named(f"bucket_of_{by}", scattering), schema)
        frame = _by_bucket(scattered, order[0], self._parts(buckets, weight))
        return Shuffled(frame.sortWithinPartitions(*order), gathering)

    def _parts(self, tasks: int, weight: int) -> int:
        """Return how many Spark tasks share `tasks` of ours over `weight` bytes: fewer than one each for light ones."""
        cores = int(self._session().conf.get("spark.refinery.cores", str(os.cpu_count() or 1)))
        return min(tasks, max(cores, -(-weight // TASK_BYTES)))

    def _frame(self, parts: int) -> "DataFrame":
        """Return the numbers below `parts`, each in a partition of its own.

        Our tasks are not rows: rows of the driver would need a Spark stage to make them, and one to cut them.
        """
        return self._session().range(0, parts, 1, parts)

    def _collect(self, frame: "DataFrame", ranks: Sequence[int], words: str) -> Iterator[Any]:
        """Return the results of ranks, each read when asked for; `words` name them in Spark's UI and event log."""
        stage = self.tracker.io.prefix.partition("/")[0]
        with _tagged(self._session()), _described(self._session(), f"{stage}: {words}"):
            results = {row.rank: row.result for row in frame.collect()}
        if lost := [rank for rank in ranks if rank not in results]:  # a driver out of memory ends the stream early
            message = (
                f"{self.tracker.io.prefix}: Spark returned {len(results)} of {len(results) + len(lost)} results; give "
                "its driver more memory. Finished tasks are kept and will not run again"
            )
            raise JobLost(message)
        return results_of(unpickled(results.pop(rank)) for rank in ranks)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise Spark's errors as ours, whichever of its calls raises them."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException, PythonException

        try:
            yield
        except PythonException as error:
            message = f"{self.tracker.io.prefix}: a kernel failed in a Spark worker ({_first_lines(str(error))})"
            raise KernelFailed(message) from error
        except (PySparkException, Py4JError) as error:
            message = (
                f"{self.tracker.io.prefix}: the Spark job failed ({_first_lines(str(error))}); if workers were killed "
                "give them more memory. Finished tasks are kept and will not run again"
            )
            raise JobLost(message) from error


@contextlib.contextmanager
def _tagged(active: "SparkSession") -> Iterator[None]:
    """Tag what this thread starts with its job, by which `cancel` finds it."""
    tag, add, remove = job.current(), *_tagging(active)
    if not tag:
        yield
        return
    add(tag)
    try:
        yield
    finally:
        remove(tag)


def _tagging(active: "SparkSession") -> tuple[Callable[[str], None], Callable[[str], None]]:
    """Return what adds a tag to the jobs of this thread, and what removes it.

    Tags of a classic session (Spark 4.2) are only found by the thread that added them; those of its context by all.
    """
    if _is_connect(active):
        return active.addTag, active.removeTag
    return active.sparkContext.addJobTag, active.sparkContext.removeJobTag


@contextlib.contextmanager
def _described(active: "SparkSession", words: str) -> Iterator[None]:
    """Describe what this thread starts. Connect (Spark 4.2) has its own descriptions, and shows ours as a tag."""
    if _is_connect(active):
        tag = words.replace(",", ";")
        active.addTag(tag)
    else:
        active.sparkContext.setJobDescription(words)
    try:
        yield
    finally:
        if _is_connect(active):
            active.removeTag(tag)
        else:
            active.sparkContext.setLocalProperty("spark.job.description", None)


def _kernel_of(tasks: Sequence[partial[Any]]) -> str:
    """Return what tasks do, by the first of them."""
    first = tasks[0].args[0] if tasks and tasks[0].args else None
    if isinstance(first, Call):
        return first.step
    return _kernel_words(first.kernel) if isinstance(first, Task) else "other work"


def _task_words(tasks: Sequence[partial[Any]]) -> str:
    """Return in words what tasks do, and over how much."""
    first = tasks[0].args[0] if tasks and tasks[0].args else None
    if isinstance(first, Call):
        return f"{first.step} of {counted(sum(len(task.args[2]) for task in tasks), 'object')}"
    return f"map {_kernel_of(tasks)} over {counted(len(tasks), 'shard')}"


def _named(name: str, function: InArrow) -> InArrow:
    """Give a function the name by which Spark's plans have it."""
    setattr(function, "__name__", name)  # noqa: B010 -- a partial takes attributes, and no type says so
    return function


def _kernel_words(kernel: Kernel) -> str:
    """Return a kernel's name without its module and arguments."""
    return kernel_name(kernel).partition("[")[0].rpartition(".")[2]


def _is_connect(active: "SparkSession") -> bool:
    return ".connect." in type(active).__module__


class Shuffled(NamedTuple):
    """Rows of a group, and what runs its kernel over them."""

    frame: "DataFrame"
    gather: Callable[[BucketTasks, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _by_bucket(rows: "DataFrame", column: str, parts: int) -> "DataFrame":
    """Return rows in `parts` partitions, each bucket whole in one.

    Each has as many buckets. Before Spark 4.1 they are placed by their hashes: some have more, with the same rows.
    """
    if _is_early():
        return rows.repartition(parts, _expression(column))
    return rows.repartitionById(parts, _expression(f"{column} % {parts}"))


def _is_early() -> bool:
    """Return whether this Spark is one before 4.1."""
    from pyspark.sql import DataFrame

    return not hasattr(DataFrame, "repartitionById")


def _expression(text: str) -> "Column":
    from pyspark.sql.functions import expr

    return expr(text)


def _first_lines(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join([*lines[:2], *lines[-2:]])[:600]


def session(master: str, resources: Resources = ANY_RESOURCES) -> "SparkSession":
    """Return this process's Spark session, started at the first call; one with other resources is stopped first.

    One that its cluster has stopped, or whose server was started again, is replaced.

    A Spark of this machine has no resources to divide: its tasks share what the machine has.
    """
    if master.startswith("local"):
        if resources.gpus:
            message = f"Spark at {master} has no GPUs to give; name a cluster in spark_default, or remove `gpus`"
            raise RecipeError(message)
        resources = ANY_RESOURCES
    with _STARTING:
        active = _ACTIVE.get((master, resources))
        if active is None or not _lives(active):
            _require_own(active, master)
            _require_start(master)
            stop()
            log.info("Spark starts at %s", master)
            active = _ACTIVE[master, resources] = _start_session(master, resources)
        return active


def _require_own(active: "SparkSession | None", master: str) -> None:
    """Raise JobLost for a session whose application has ended with it: this process is a part of that, and ends."""
    if active is not None and master == SUBMITTED:
        message = "the cluster has stopped the application of this driver; another driver goes on"
        raise JobLost(message)


def _lives(active: "SparkSession") -> bool:
    """Return whether a session takes work: a cluster stops a context, and tells only its JVM.

    A client of Spark Connect learns by its next request that the server has another session.
    """
    from py4j.protocol import Py4JError

    if _is_connect(active):
        return not active.is_stopped
    try:
        context = active.sparkContext._jsc  # noqa: SLF001 -- Python's own context has no such question
        return context is not None and not context.sc().isStopped()
    except (Py4JError, ConnectionError):  # its JVM is gone
        return False


def lives() -> bool:
    """Return whether what this process has started takes work."""
    return all(_lives(active) for active in list(_ACTIVE.values()))


def _start_session(master: str, resources: Resources) -> "SparkSession":
    reserved = task_settings(master, resources)
    if master == SUBMITTED:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # an archive of Python has another path at each worker
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    if master == SUBMITTED:
        return _configured(builder, QUERY_SETTINGS | (UNBOUNDED if _is_early() else {}) | reserved).getOrCreate()
    if master.startswith("sc://"):
        return _settled(builder.remote(master).getOrCreate())
    builder = _configured(builder, session_settings(master) | reserved)
    from pyspark.errors import PySparkRuntimeError

    try:
        return builder.master(_with_retries(master)).appName("refinery").getOrCreate()
    except PySparkRuntimeError as error:
        message = f"Spark did not start ({_first_lines(str(error))}). {WAY_OUT}"
        raise RecipeError(message) from error


def _configured(builder: "SparkSession.Builder", settings: Mapping[str, str]) -> "SparkSession.Builder":
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def _settled(active: "SparkSession") -> "SparkSession":
    """Give a session of somebody's server our settings; one that the server keeps to itself is named and left."""
    refused = _refused(active, QUERY_SETTINGS)
    if BATCH_BYTES in refused:
        _refused(active, UNBOUNDED)
    return active


def _refused(active: "SparkSession", settings: Mapping[str, str]) -> set[str]:
    """Set what a session takes of some settings; return the names of all others."""
    from pyspark.errors import PySparkException

    refused = set()
    for name, value in settings.items():
        try:
            active.conf.set(name, value)
        except PySparkException as error:
            log.warning("Spark Connect keeps its own %s: %s", name, _first_lines(str(error)))
            refused.add(name)
    return refused


def session_settings(master: str) -> dict[str, str]:
    """Return the settings of a session; of a cluster's, its own configuration decides the rest.

    Only a Spark of this machine listens on loopback: the executors of a cluster are elsewhere.
    """
    settings = QUERY_SETTINGS | {
        "spark.ui.enabled": "true" if UI in os.environ else "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={QUIET.as_uri()} {UNMEASURED}",
    }
    if port := os.environ.get(UI):
        settings["spark.ui.port"] = port
    if events := os.environ.get(EVENTS):
        settings |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events}
    if not master.startswith("local"):
        return settings
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # otherwise Spark resolves this machine's name, and warns
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", UNMEASURED)
    place = tempfile.gettempdir()  # a JVM does not know TMPDIR
    settings["spark.driver.extraJavaOptions"] += f" {QUICK} '-Djava.io.tmpdir={place}'"
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    kept = {"spark.authenticate": "true", "spark.driver.memory": "2g", "spark.local.dir": place}
    return settings | loopback | kept | _local_sockets()


def task_settings(master: str, resources: Resources) -> dict[str, str]:
    """Return the settings by which Spark gives each task its resources; RecipeError where Spark has none to give.

    Tasks run in Python beside the JVM. A standalone master only counts an executor's heap, so an executor is one task,
    and its heap, which stays nearly empty, is the task's memory. YARN and Kubernetes count what is beside the heap.
    """
    if resources == ANY_RESOURCES:
        return {}
    if master.startswith("sc://"):
        message = f"{master}: Spark Connect takes no resources from its clients; remove `run: resources`"
        raise RecipeError(message)
    cores = str(resources.cores or 1)
    settings = {"spark.task.cpus": cores}
    if resources.memory:
        settings |= {"spark.executor.cores": cores, **_memory_settings(master, round(resources.memory * 1024))}
    if resources.gpus:
        whole = math.ceil(resources.gpus)
        settings |= {"spark.task.resource.gpu.amount": f"{resources.gpus:g}"}
        settings |= {"spark.executor.resource.gpu.amount": str(whole)}
    return settings


def _memory_settings(master: str, size: int) -> dict[str, str]:
    if not master.startswith("spark://"):
        return {"spark.executor.memoryOverhead": f"{size}m"}
    if size < LEAST_HEAP:
        message = (
            f"{master}: an executor, which is one task, needs {LEAST_HEAP} MiB at least, and `memory` is {size} MiB; "
            "raise it in `run: resources`, or remove it"
        )
        raise RecipeError(message)
    return {"spark.executor.memory": f"{size}m"}


def _local_sockets() -> dict[str, str]:
    """Return the settings that connect the JVM and its workers by Unix sockets, in a folder of our own.

    Over TCP each task waits 40 ms for an acknowledgement that the kernel delays. Where TMPDIR is too long for the path
    of a socket, TCP it is.
    """
    folder = tempfile.mkdtemp(prefix="refinery-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if len(folder) > SOCKET_FOLDER:
        return {}
    name = "spark.python.unix.domain.socket"
    return {f"{name}.enabled": "true", f"{name}.dir": folder}


def _with_retries(master: str) -> str:
    """Return `local[N]` as `local[N,3]`: a killed worker's task runs again, as it would on a cluster."""
    cores = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return f"local[{cores.group(1) or 1},3]" if cores else master


def _require_start(master: str) -> None:
    """Raise RecipeError or JobLost if no session can be started: there is no Java, or no cluster that answers."""
    if master == SUBMITTED:
        return _require_submitted()
    if not master.startswith("sc://"):  # a client of Spark Connect has no JVM
        require_java()
    return require_answer(master) if "://" in master else None


def _require_submitted() -> None:
    if GATEWAY not in os.environ:
        message = f"this process was not started by spark-submit ({GATEWAY} is not set), so no Spark is around it"
        raise RecipeError(message)


def _master(address: str) -> str:
    """Return the master at an address; RecipeError for a place that takes whole requests alone."""
    if is_emr(address):
        message = (
            f"{address} is EMR Serverless, which takes whole requests and no tasks of this process; run the stage by "
            "Airflow or `refinery run`, or name a cluster that takes tasks"
        )
        raise RecipeError(message)
    return address if address == SUBMITTED else spark_address(address)


def factory(address: str, resources: Resources) -> EngineFactory:
    """Return what makes this engine at `address` (default: a Spark of this machine)."""
    return partial(SparkEngine, master=_master(address), resources=resources)


def load(_address: str) -> None:
    """Import what `start` needs, whatever the address."""
    import pyspark.sql  # noqa: F401 -- for its effect


def start(address: str, resources: Resources) -> None:
    """Start the session at `address` (default: a Spark of this machine)."""
    session(_master(address), resources)


def cancel(job: str) -> None:
    """Cancel what runs for a job."""
    for active in list(_ACTIVE.values()):
        if _is_connect(active):
            active.interruptTag(job)
        else:
            active.sparkContext.cancelJobsWithTag(job)


def stop() -> None:
    """Stop this process's Spark session, if it has one."""
    while _ACTIVE:
        from py4j.protocol import Py4JError

        with _STARTING, contextlib.suppress(Py4JError, ConnectionError, KeyError):  # a JVM that is gone is stopped
            _ACTIVE.popitem()[1].stop()
