"""Docker and its compose plugin, as a shell calls them."""

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.containers import wait_until
from tests.embedded import PROJECT
from tests.test_compose import COMPOSE

PROJECT_NAME = "refinery-compose-test"
"""Apart from an operator's own containers and volumes."""


def docker(*words: str, seconds: float = 1800, env: Mapping[str, str] | None = None) -> str:
    """Run a command of Docker's client; return what it writes, AssertionError with its reason if it fails."""
    done = subprocess.run(
        ["docker", *words],
        cwd=PROJECT,
        env=os.environ | dict(env or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert done.returncode == 0, f"docker {' '.join(words)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@functools.cache
def missing() -> str:
    """Return what these tests need and do not find; "" if all is there."""
    if shutil.which("docker") is None:
        return "install Docker"
    for words, what in ((["info"], "start dockerd"), (["compose", "version"], "install Docker's compose plugin")):
        if subprocess.run(["docker", *words], capture_output=True, check=False).returncode:
            return what
    return ""


@dataclass(frozen=True, slots=True)
class Services:
    """The services of `docker-compose.yaml` under a `.env` of their own, with what another file changes."""

    env_file: Path
    changes: Path

    def compose(self, *words: str, seconds: float = 1800) -> str:
        """Run a command of compose."""
        files = ["--file", str(COMPOSE), "--file", str(self.changes)]
        named = ["--project-name", PROJECT_NAME, "--env-file", str(self.env_file)]
        return docker("compose", *named, *files, *words, seconds=seconds)

    def containers(self, service: str) -> list[str]:
        """The ids of a service's running containers, oldest first."""
        return self.compose("ps", "--quiet", service).split()

    def states(self) -> dict[str, tuple[str, str]]:
        """The state and the health of every container, by name; those that have ended, too."""
        lines = [json.loads(line) for line in self.compose("ps", "--all", "--format", "json").splitlines()]
        return {line["Name"]: (f"{line['State']} {line['ExitCode']}", line["Health"]) for line in lines}

    def processes(self, container: str) -> str:
        """The command lines that run in a container."""
        return docker("top", container, "-eo", "pid,args")

    def run(self, service: str, *words: str) -> str:
        """Run a command in a service's container, as its user."""
        return self.compose("exec", "-T", service, *words)

    def times(self, service: str, names: str, *folders: str) -> dict[str, str]:
        """The times of files in a service's container, by their paths below one of the folders."""
        find = ["find", *folders, "-ignore_readdir_race", "-name", names, "-printf", "%P %T@\n"]
        return dict(line.rsplit(" ", 1) for line in self.run(service, *find).splitlines())

    def wait_for_process(self, containers: Iterable[str], words: str, seconds: float) -> str:
        """Wait until one of some containers runs what has these words in its command line; return which."""
        listed = list(containers)
        for _ in wait_until(f"a container runs {words}", seconds):
            for container in listed:
                if words in self.processes(container):
                    return container
        raise AssertionError

    def wait_for_health(self, containers: Iterable[str], health: str, seconds: float = 600) -> None:
        """Wait until containers have a health."""
        for container in containers:
            for _ in wait_until(f"{container} is {health}", seconds, each=2):
                if docker("inspect", "--format", "{{.State.Health.Status}}", container).strip() == health:
                    break
