"""Checks that this machine has a Java that Spark runs on."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from pipeline_tasks.errors import RecipeError

OLDEST = 17
"""The oldest Java that Spark runs on."""

WAY_OUT = f"Spark needs Java {OLDEST} or newer: `apt-get install openjdk-{OLDEST}-jre-headless`, or set JAVA_HOME"
"""The way out when there is no Java, or one that is too old."""

PATIENCE = 30.0
"""Seconds within which a Java has to say its version, which takes a tenth of one."""

OLD_STYLE = 1
"""The first number of versions before 9: Java 8 says that it is 1.8."""


def require_java() -> int:
    """Return the version of the Java that Spark would start; RecipeError if there is none, or it is too old."""
    home = os.environ.get("JAVA_HOME", "")
    java = shutil.which(f"{home}/bin/java") if home else shutil.which("java")  # Spark looks in this order too
    if not java:
        message = f"{f'JAVA_HOME={home} has no bin/java. ' if home else ''}{WAY_OUT}"
        raise RecipeError(message)
    release = _stored_version(java) or _reported_version(java)
    if release < OLDEST:
        what = f"is Java {release}" if release else "does not run"
        message = f"{java} {what}. {WAY_OUT}"
        raise RecipeError(message)
    return release


def _stored_version(java: str) -> int:
    """Return the version in the file that a Java has beside `bin`, which takes no process; 0 without one."""
    try:
        text = (Path(java).resolve().parents[1] / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return _version(re.search(r'^JAVA_VERSION="(\d+)(?:\.(\d+))?', text, re.MULTILINE))


def _reported_version(java: str) -> int:
    """Return the version that a Java says; 0 if it does not run."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=PATIENCE)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return _version(re.search(r'version "(\d+)(?:\.(\d+))?', run.stderr)) if not run.returncode else 0


def _version(match: re.Match[str] | None) -> int:
    if match is None:
        return 0
    first = int(match[1])
    return int(match[2] or 0) if first == OLD_STYLE else first
