"""Receives messages as a webhook and a mail server do, on loopback."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar


class Hooks(ThreadingHTTPServer):
    """A server that keeps the JSON of every POST by its path, with its headers, and answers with `status`."""

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
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
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
