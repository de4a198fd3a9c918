"""A proxy before a server of objects that does, to chosen requests, what networks and busy servers do.

Before an S3 server it is also one of Google's XML API, which is S3's but for the condition of a put-if-absent, the name
of its header, and who signs. No server for Linux that registries have takes a PUT of that API: fake-gcs-server
answers it with `invalid uploadType`, and gcp-storage-emulator 2026.7 knows no condition.
"""

import contextlib
import http.client
import re
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Literal

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

Fault = (
    Literal["lost_answer", "short_body", "lost_request", "whole_body", "no_condition", "changed_body"]
    | tuple[int, str]
    | tuple[Literal["kept"], str, str]
)
"""What happens to a request: its answer is lost, its body breaks off, it never arrives, its range or its condition is
not heeded, a byte of its body changes, (status, code) answers, or a request to delete many says that it kept a key."""


S3_NAMES = {("x-goog-if-generation-match", "0"): ("If-None-Match", "*")}
"""Headers of Google's requests as S3 writes them."""


@dataclass(slots=True)
class FaultyS3:
    """The proxy's address, the faults still to come (method, fault), those that happened, and what was requested."""

    endpoint: str = ""
    requests: int = 0
    coming: list[tuple[str, Fault]] = field(default_factory=list)
    happened: list[tuple[str, Fault]] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    """The headers by which requests were conditional, as they came."""
    busy: int = 0
    """Percent of the requests that 503 answers, by a hash of their number."""
    keys: tuple[str, str] | None = None
    """Access key and secret by which all requests must be signed, empty for none at all; None: nobody looks."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, method: str) -> Fault | None:
        """Count a request, and take the fault that is due, if it is for this method."""
        with self.lock:
            self.requests += 1
            if zlib.crc32(b"%d" % self.requests) % 100 < self.busy:
                return 503, "SlowDown"
            if not self.coming or self.coming[0][0] != method:
                return None
            self.happened.append(self.coming.pop(0))
            return self.happened[-1][1]


class _Proxy(BaseHTTPRequestHandler):
    host: ClassVar[str]
    faults: ClassVar[FaultyS3]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms behind its headers

    def _pass_on(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # The client died. MiniStack would store what arrived of it, S3 stores nothing.
            self.close_connection = True
            return
        self.faults.ranges += filter(None, [self.headers.get("Range")])
        sent = ((name, self.headers.get(name)) for name in ("If-None-Match", "X-Goog-If-Generation-Match"))
        self.faults.conditions += [f"{name.lower()}: {value}" for name, value in sent if value]
        fault = self.faults.next(self.command)
        if self.faults.keys is not None and not self._is_signed(*self.faults.keys):
            fault = 403, "AccessDenied"
        if isinstance(fault, tuple) and len(fault) == 3:
            self._answer(200, {"Content-Type": "application/xml"}, _kept(*fault[1:]))
        elif isinstance(fault, tuple):
            self._answer(fault[0], {"Content-Type": "application/xml"}, _error(fault[1]))
        elif fault == "lost_request":
            self.close_connection = True
        else:
            self._forward(body, fault)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _pass_on  # noqa: N815 -- http.server's names

    def _is_signed(self, key: str, secret: str) -> bool:
        """Return whether a request has the signature of these keys, or none if they are empty."""
        written = self.headers.get("Authorization", "")
        if not key or not written:
            return not key and not written
        credential, names, signature = re.findall(r"(?:Credential|SignedHeaders|Signature)=([^,]+)", written)
        signed = {name: self.headers[name] for name in names.split(";")}
        request = AWSRequest(self.command, f"http://{self.headers['Host']}{self.path}", signed)
        request.context["timestamp"] = self.headers["X-Amz-Date"]
        auth = S3SigV4Auth(Credentials(key, secret), "s3", credential.split("/")[2])
        own = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        return bool(credential.startswith(f"{key}/") and own == signature)

    def _forward(self, body: bytes, fault: Fault | None) -> None:
        with contextlib.closing(http.client.HTTPConnection(self.host)) as onward:
            given = {S3_NAMES.get((name.lower(), value), (name, value)) for name, value in self.headers.items()}
            unheeded = {"whole_body": "range", "no_condition": "if-none-match"}.get(str(fault))
            heeded = {name: value for name, value in given if name.lower() != unheeded}
            onward.request(self.command, self.path, body, heeded)
            answer = onward.getresponse()
            content = answer.read()
        if fault == "lost_answer":
            self.close_connection = True
            return
        sent = content[: len(content) // 2] if fault == "short_body" else content
        if fault == "changed_body":
            sent = content[:-1] + bytes([content[-1] ^ 1])
        self._answer(
            answer.status, {name.title(): value for name, value in answer.headers.items()}, sent, promised=len(content)
        )

    def _answer(self, status: int, headers: dict[str, str], body: bytes, promised: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(promised or len(body))
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        if promised is not None and len(body) < promised:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def faulty_s3(server: str) -> Iterator[FaultyS3]:
    """Run a proxy before the server at the endpoint `server`."""
    faults = FaultyS3()
    facts = {"host": server.removeprefix("http://"), "faults": faults}
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Proxy", (_Proxy,), facts)) as proxy:
        faults.endpoint = f"http://127.0.0.1:{proxy.server_address[1]}"
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield faults
        finally:
            proxy.shutdown()
            thread.join()


def _kept(key: str, code: str) -> bytes:
    fields = f"<Key>{key}</Key><Code>{code}</Code><Message>planted</Message>"
    return f"<?xml version='1.0'?><DeleteResult><Error>{fields}</Error></DeleteResult>".encode()


def _error(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>planted</Message></Error>".encode()
