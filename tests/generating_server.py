"""A server of OpenAI's protocol whose model is a program: real HTTP over loopback, and faults on demand.

In this process: `with generating_server() as server:`, whose `variables` are an operator's. As a process of its own,
which can be killed: `python -m tests.generating_server PORT`, or `with server_process() as server:`.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Literal

from tests.chain import PROJECT
from tests.ports import free_port

MODEL = "tiny-writer"

CONTEXT = 4000
"""Words that its model can read and write."""

Fault = Literal["closed", "broken", "hangs", "no_json", "redirect"] | tuple[int, str] | tuple[int, str, str]
"""What happens to a request: its connection is closed, its answer breaks off in the middle, nothing is answered for
`hanging` seconds, the answer is no JSON, it leads elsewhere, or (status, code, `Retry-After`) answers."""

Program = Callable[[str, str, int], str]
"""What a model writes: of a system message, of what the user says, and of a seed (0: greedy)."""


def rewritten(system: str, user: str, seed: int) -> str:
    """The last paragraph of what the user says, and a word that only this system message and seed have."""
    mark = hashlib.blake2b(f"{system}\0{user}\0{seed}".encode(), digest_size=4).hexdigest()
    return f"{user.strip().rpartition(chr(10) * 2)[2]} ({mark})"


@dataclass(slots=True)
class GeneratingServer:
    """The address of a server, its model, the faults still to come, and what was asked.

    `bad` are words whose requests fail each time, with what is answered: a code of 400, "refuse" or "500".
    """

    url: str = ""
    program: Program = rewritten
    model: str = MODEL
    key: str = ""
    coming: list[Fault] = field(default_factory=list)
    always: Fault | None = None
    bad: Mapping[str, str] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    hanging: float = 5.0
    pause: float = 0.0
    """Seconds that each text takes."""
    most: int = 0
    """The most requests that were on their way at once."""
    now: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def variables(self) -> dict[str, str]:
        """What an operator sets, with short patience."""
        named = {"REFINERY_ENDPOINT": self.url, "REFINERY_ENDPOINT_PATIENCE": "2", "REFINERY_ENDPOINT_SECONDS": "2"}
        return {**named, **({"REFINERY_ENDPOINT_KEY": self.key} if self.key else {})}

    def fault(self) -> Fault | None:
        """Take the fault that is due."""
        with self.lock:
            return self.coming.pop(0) if self.coming else self.always

    @contextmanager
    def counted(self, body: dict[str, Any]) -> Iterator[None]:
        """Note a request while it is here."""
        with self.lock:
            self.asked.append(body)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            yield
        finally:
            with self.lock:
                self.now -= 1


@contextmanager
def generating_server(**settings: Any) -> Iterator[GeneratingServer]:
    """Have a server in threads of this process."""
    state = GeneratingServer(**settings)
    handler = type("Handler", (_Handler,), {"state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        http.block_on_close = False
        state.url = f"http://127.0.0.1:{http.server_port}/v1"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield state
        http.shutdown()
        thread.join()


@dataclass(slots=True)
class ServerProcess:
    """A server in a process of its own, which can be killed and started again at the same address."""

    port: int
    pause: float
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def variables(self) -> dict[str, str]:
        return GeneratingServer(url=self.url).variables

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.generating_server", str(self.port), str(self.pause)]
        self.process = subprocess.Popen(command, cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)})
        for _ in range(600):
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/models", timeout=5):
                return
            time.sleep(0.05)
        message = f"no server came up at {self.url}"
        raise RuntimeError(message)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def written(self) -> int:
        """How many texts it has written since it was started."""
        with urllib.request.urlopen(f"{self.url}/written", timeout=5) as answer:
            return int(answer.read())


@contextmanager
def server_process(pause: float = 0.0) -> Iterator[ServerProcess]:
    """Have a server in a process of its own."""
    server = ServerProcess(free_port(), pause)
    server.start()
    try:
        yield server
    finally:
        server.kill()


class _Handler(BaseHTTPRequestHandler):
    """Answers as vLLM's server does."""

    state: ClassVar[GeneratingServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.state.paths.append(self.path)
        if self.path == "/v1/written":
            self._send(200, len(self.state.asked))
        elif self.path == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": self.state.model, "owned_by": "tests"}]})
        else:
            self._send(404, {"error": {"message": "no such page"}})

    def do_POST(self) -> None:
        self.state.paths.append(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.state.key and self.headers.get("Authorization") != f"Bearer {self.state.key}":
            self._send(401, {"error": {"message": "wrong key"}})
            return
        with self.state.counted(body):
            self._fail(fault, body) if (fault := self.state.fault()) else self._write(body)

    def _fail(self, fault: Fault, body: dict[str, Any]) -> None:
        if fault == "hangs":
            time.sleep(self.state.hanging)
        if fault in ("closed", "hangs"):
            self.close_connection = True
        elif fault == "broken":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.close_connection = True
        elif fault == "no_json":
            self._send_bytes(200, b"<html>a proxy's page</html>", {})
        elif fault == "redirect":
            self._send_bytes(307, b"", {"Location": "http://127.0.0.1:9/v1/chat/completions"})
        else:
            status, code, *after = fault
            error = {"error": {"message": f"at {body.get('model')}", "code": code}}
            self._send(status, error, {"Retry-After": after[0]} if after else {})

    def _write(self, body: dict[str, Any]) -> None:
        is_chat = self.path == "/v1/chat/completions"
        system, user = _messages(body) if is_chat else ("", body["prompt"])
        read, most = len(f"{system} {user}".split()), body["max_tokens"]
        if body["model"] != self.state.model:
            self._send(404, {"error": {"message": "no such model", "code": "model_not_found"}})
            return
        if read + most > CONTEXT:
            said = f"This model's maximum context length is {CONTEXT} tokens; you asked for {read + most}: {user[:50]}"
            self._send(400, {"error": {"message": said, "type": "BadRequestError", "code": 400}})
            return
        for word, code in self.state.bad.items():
            if word in user:
                self._fail_at(word, code)
                return
        time.sleep(self.state.pause)
        words = self.state.program(system, user, body.get("seed", 0)).split(" ")
        text, reason = " ".join(words[:most]), "length" if len(words) > most else "stop"
        self._send(200, self._choice(text, reason, read, min(len(words), most), is_chat=is_chat))

    def _fail_at(self, word: str, code: str) -> None:
        if code == "refuse":
            self._send(200, self._choice("", "content_filter", 1, 0, is_chat=True))
        elif code == "500":
            self._send(500, {"error": {"message": f"failed at {word}"}})
        else:
            self._send(400, {"error": {"message": f"bad: {word}", "code": code}})

    def _choice(self, text: str, reason: str, read: int, wrote: int, *, is_chat: bool) -> dict[str, Any]:
        said = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
        usage = {"prompt_tokens": read, "completion_tokens": wrote}
        return {"model": self.state.model, "choices": [{"index": 0, **said, "finish_reason": reason}], "usage": usage}

    def _send(self, status: int, value: object, headers: Mapping[str, str] | None = None) -> None:
        self._send_bytes(status, json.dumps(value).encode(), headers or {})

    def _send_bytes(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _messages(body: dict[str, Any]) -> tuple[str, str]:
    said = {message["role"]: message["content"] for message in body["messages"]}
    return said.get("system", ""), said["user"]


def main(port: str, pause: str = "0") -> None:
    state = GeneratingServer(pause=float(pause))
    handler = type("Handler", (_Handler,), {"state": state})
    ThreadingHTTPServer(("127.0.0.1", int(port)), handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
