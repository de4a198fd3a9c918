"""An S3 server for tests: MiniStack on a port of this machine, its objects in a folder, stopped by its id."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

START = 120.0
"""Seconds that the server may take until it answers."""

SERVE = """
import asyncio, sys
from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.app import app

DENIED = b"<Error><Code>AccessDenied</Code><Message>of another key</Message></Error>"
asked = open("asked.log", "a", buffering=1)


async def guarded(scope, receive, send):
    headers = dict(scope.get("headers", ()))
    said = headers.get(b"authorization", b"").decode()
    key = said.partition("Credential=")[2].partition("/")[0]
    if sys.argv[2] and scope["type"] == "http" and not scope["path"].startswith("/_ministack"):
        print(key or "nobody", file=asked)
        is_open = not said and scope["path"].startswith("/public") and scope["method"] in ("GET", "HEAD")
        if key != sys.argv[2] and not is_open:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"application/xml")]})
            await send({"type": "http.response.body", "body": DENIED})
            return
    await app(scope, receive, send)


config = Config()
config.bind, config.keep_alive_timeout, config.loglevel = [f"fd://{sys.argv[1]}"], 75, "WARNING"
asyncio.run(serve(guarded, config))
"""
"""MiniStack as its own command runs it, but on a socket that is bound already: of a free port, another may take it first.

It takes every key. One that is started with a key refuses requests that do not name it, but for reads of nobody in buckets
whose names begin with `public`, and notes who asked.
"""


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server: its endpoint, its process, and the environment that makes any program use it."""

    endpoint: str
    pid: int
    env: dict[str, str]
    folder: Path = Path()

    def asked(self) -> set[str]:
        """The keys of all requests so far, of a server that was started with one; `nobody` for those without."""
        return set((self.folder / "asked.log").read_text().split())


@contextlib.contextmanager
def s3_server(folder: Path, key: str = "") -> Iterator[S3Server]:
    """Run a server over `folder`, which with a `key` refuses all others; it is killed at the end."""
    with socket.socket() as listener, (folder / "server.log").open("wb") as log:
        listener.bind(("127.0.0.1", 0))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port = int(listener.getsockname()[1])
        endpoint = f"http://127.0.0.1:{port}"
        keys = {"AWS_ACCESS_KEY_ID": key or "refinery", "AWS_SECRET_ACCESS_KEY": "refinery-secret"}
        settings = {
            "GATEWAY_PORT": str(port),
            "SERVICES": "s3,iam,sts,sqs",
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(folder / "objects"),
            "STATE_DIR": str(folder / "state"),
            "LOG_LEVEL": "WARNING",
            "IOT_MTLS_ENABLED": "0",  # else it listens on 8883 of every interface
        }
        command, sockets = [sys.executable, "-c", SERVE, str(listener.fileno()), key], [listener.fileno()]
        environ = os.environ | keys | settings
        server = subprocess.Popen(command, env=environ, stdout=log, stderr=log, cwd=folder, pass_fds=sockets)
        listener.close()  # with the server, its port is closed
        try:
            _wait_until_it_answers(f"{endpoint}/_ministack/health", server, folder / "server.log")
            env = keys | {"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "3"}
            yield S3Server(endpoint, server.pid, env, folder)
        finally:
            server.kill()
            server.wait()


def _wait_until_it_answers(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(url, timeout=1):
            return
        time.sleep(0.05)
    message = f"the S3 server did not start:\n{log.read_text()[-2000:]}"
    raise RuntimeError(message)
