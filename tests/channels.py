"""Receives messages as a webhook and a mail server do, on loopback."""

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_string
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar


class Hooks(ThreadingHTTPServer):
    """A server that keeps every POST with its path and headers, JSON or else bytes, and answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.status = 200
        self.received: list[tuple[str, dict[str, str], Any]] = []

    def bodies(self) -> list[Any]:
        return [body for _, _, body in self.received]


class _Hook(BaseHTTPRequestHandler):
    server: Hooks

    def do_POST(self) -> None:
        body: Any = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Type"] == "application/json":
            body = json.loads(body)
        self.server.received.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Mails(socketserver.ThreadingTCPServer):
    """A server that speaks enough of SMTP (RFC 5321) to receive mail; it keeps the recipients and the mail."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Mail)
        self.port = self.server_address[1]
        self.received: list[tuple[list[str], Message]] = []


class Metrics:
    """A StatsD server: it keeps the lines of every UDP packet that has come."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.2)
        self.port = int(self._socket.getsockname()[1])
        self._received: list[str] = []

    def settings(self, **more: str) -> dict[str, str]:
        """Return the settings with which Airflow sends its metrics here."""
        settings = {"STATSD_ON": "True", "STATSD_HOST": "127.0.0.1", "STATSD_PORT": str(self.port), **more}
        return {f"AIRFLOW__METRICS__{name}": value for name, value in settings.items()}

    def lines(self) -> list[str]:
        """Return what has come, once nothing more comes."""
        with suppress(TimeoutError):
            while True:
                self._received += self._socket.recv(65_536).decode().splitlines()
        return self._received

    def close(self) -> None:
        self._socket.close()


class _Mail(socketserver.StreamRequestHandler):
    server: Mails

    def handle(self) -> None:
        recipients: list[str] = []
        self._answer("220 here")
        while line := self.rfile.readline().decode().strip():
            verb = line.upper()
            if verb.startswith("RCPT TO:"):
                recipients.append(line.partition(":")[2].strip("<>"))
            if verb == "DATA":
                self._answer("354 go on")
                self.server.received.append((recipients, self._mail()))
            self._answer("221 bye" if verb == "QUIT" else "250 ok")

    def _mail(self) -> Message:
        lines = iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), ".")
        return message_from_string("\n".join(line.removeprefix(".") for line in lines))

    def _answer(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


Server = TypeVar("Server", Hooks, Mails)


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
