"""The images that compose needs: from their registry, else made of Debian's packages and of those that our tests use."""

import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.compose.docker import docker
from tests.embedded import PROJECT
from tests.test_compose import COMPOSE

HERE = Path(__file__).parent

PYTHON = "refinery-test/python"
STANDS_FOR = {"POSTGRES_IMAGE": "refinery-test/postgres", "OBJECT_STORE_IMAGE": "refinery-test/object-store"}
"""The variable of compose that names an image, and the image that we make in its place."""

PACKAGES = "python3,python3-pip,python3-venv,ca-certificates"


def named_images() -> dict[str, str]:
    """Return the images that compose and the Dockerfile name, by their variables."""
    base = re.search(r"^ARG PYTHON_IMAGE=(.*)$", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)
    assert base is not None
    return {
        "PYTHON_IMAGE": base[1],
        **dict(re.findall(r"\$\{(\w+_IMAGE):-([^}]+@sha256:[^}]+)\}", COMPOSE.read_text())),
    }


def can_be_pulled() -> bool:
    """Return whether a registry gives the named images; it is asked once, for each of them."""
    for image in named_images().values():
        done = subprocess.run(["docker", "pull", "--quiet", image], capture_output=True, check=False, timeout=1800)
        if done.returncode:
            return False
    return True


def images() -> dict[str, str]:
    """Return the variables of `.env` that name images: none where the named ones can be pulled."""
    if can_be_pulled():
        return {}
    if not docker("images", "--quiet", PYTHON).strip():
        make_python()
    build = ["compose", "--file", str(HERE / "images.yaml"), "build", "--quiet"]
    docker(*build, env={"BASE": PYTHON, "MINISTACK": version("ministack")})
    return {"PYTHON_IMAGE": PYTHON, **STANDS_FOR}


def make_python() -> None:
    """Make Debian bookworm with its python3, and with this machine's way to the package index."""
    with tempfile.TemporaryDirectory(prefix="refinery-debian-") as name:
        root = Path(name) / "root"
        bootstrap = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)]
        done = subprocess.run(bootstrap, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        shutil.rmtree(root / "var/cache/apt/archives")
        (root / "etc/pip.conf").write_text(_pip_settings(root))
        archive = Path(name) / "root.tar"
        subprocess.run(["tar", "--directory", str(root), "--create", "--file", str(archive), "."], check=True)
        docker("import", "--change", "ENV LANG=C.UTF-8", str(archive), PYTHON)


def _pip_settings(root: Path) -> str:
    """Return pip's settings of this machine as far as an image can follow them; its certificates are copied there."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    known = {key.rpartition(".")[2]: value for key, value in re.findall(r"^(\S+)='(.*)'$", listed.stdout, re.MULTILINE)}
    kept = {key: value for key, value in known.items() if key.endswith("index-url") and value.startswith("http")}
    if Path(known.get("cert", "")).is_file():
        shutil.copy(known["cert"], root / "etc/pip.crt")
        kept["cert"] = "/etc/pip.crt"
    return "".join(["[global]\n", *(f"{key} = {value}\n" for key, value in kept.items())])
