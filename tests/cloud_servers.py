"""Servers for tests of `gs://` and `az://`: Azurite, which is Microsoft's, and the proxy of tests before an S3 server."""

import base64
import contextlib
import email.utils
import hashlib
import hmac
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.faulty_s3 import FaultyS3, faulty_s3

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account of every emulator, as Microsoft documents it: no secret."""

WHERE = "REFINERY_AZURITE"
"""The variable that names the command; without it `make azurite` has put it below `.refinery`."""

INSTALLED = Path(__file__).parents[1] / ".refinery/azurite/node_modules/.bin/azurite-blob"
START = 120.0
VERSION = "2021-08-06"


def forget(monkeypatch: pytest.MonkeyPatch, *prefixes: str) -> None:
    """Remove what this process's environment says of other stores."""
    for name in [name for name in os.environ if name.startswith(prefixes)]:
        monkeypatch.delenv(name)


@contextlib.contextmanager
def google(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    """Point `gs://` at a proxy before an S3 server."""
    forget(monkeypatch, "GOOGLE_")
    with faulty_s3(s3) as proxy:
        monkeypatch.setenv("GOOGLE_BASE_URL", proxy.endpoint)
        monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "of-tests")  # unsigned, obstore would only read
        yield proxy


def command() -> str:
    """Return the command of Azurite; a test without it is skipped."""
    found = os.environ.get(WHERE) or (str(INSTALLED) if INSTALLED.exists() else shutil.which("azurite-blob"))
    return found or pytest.skip(f"Azurite is not installed: `make azurite`, or name its command by {WHERE}")


@contextlib.contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """Run Azurite over a folder; return the address of its account. It is killed at the end."""
    asked = [
        command(),
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        "0",
        "--location",
        str(folder),
        "--skipApiVersionCheck",
        "--disableTelemetry",
    ]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(asked, stdout=log, stderr=log, cwd=folder)
    try:
        yield f"{_address(folder / 'server.log', server)}/{ACCOUNT}"
    finally:
        server.kill()
        server.wait()


def _address(log: Path, server: "subprocess.Popen[bytes]") -> str:
    """Return the address that a server of a free port says that it listens on."""
    end = time.monotonic() + START
    while time.monotonic() < end and server.poll() is None:
        said = [word for word in log.read_text().split() if word.startswith("http://127.0.0.1:")]
        if said and urlsplit(said[-1]).port:
            return said[-1].rstrip("/")
        time.sleep(0.05)
    message = f"Azurite did not start:\n{log.read_text()[-2000:]}"
    raise RuntimeError(message)


def azure_root(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a container; return a prefix in it, which this process and its children find by environment."""
    forget(monkeypatch, "AZURE_")
    container = f"refinery-{uuid4().hex[:12]}"
    make_container(endpoint, container)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", endpoint)
    return f"az://{container}/root"


def make_container(endpoint: str, container: str) -> None:
    """Create a container; obstore has no call for that."""
    dated = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": VERSION}
    headers = "\n".join(f"{name}:{value}" for name, value in sorted(dated.items()))
    resource = f"/{ACCOUNT}{urlsplit(endpoint).path}/{container}\nrestype:container"
    signed = "\n".join(["PUT", *[""] * 11, headers, resource]).encode()
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), signed, hashlib.sha256).digest()).decode()
    request = urllib.request.Request(
        f"{endpoint}/{container}?restype=container",
        method="PUT",
        headers={**dated, "Authorization": f"SharedKey {ACCOUNT}:{signature}"},
    )
    urllib.request.urlopen(request).close()
