"""Files that are made to harm readers, and what becomes of each in a process of its own with the limits of a sandbox.

    python -m tests.file_types.hostile [NAME ...]

prints each file's end, its seconds of processor time and the most MB that its process held.
"""

import contextlib
import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pipeline_tasks.file_types import brought_types
from pipeline_tasks.text.page.file_reading import reader_at
from pipeline_tasks.text.page.file_text import REFUSED, FileRefused, FileText, function_at
from pipeline_tasks.text.page.sandbox_messages import Limits
from tests.file_types import hostile_archives, hostile_pdfs, hostile_texts
from tests.file_types.hostile_file import Hostile
from tests.peak import peak_kb

SECONDS = Limits().seconds
MEMORY = Limits().memory
TEXT_MB = 64
LOOK_SECONDS = 1.0
LOOK_MB = 64
SEED = 55
MUTANTS = 12

READ = ("text", "cut", "unread", "empty")
LIMITS = ("timeout", "memory")
ALLOWED = (*READ, *REFUSED, *LIMITS)
"""What may become of any file: a text, pages that have none, no text at all, a reason, or the end of a limit."""

SAMPLES: Mapping[str, bytes] = {
    "pdf": hostile_pdfs.SAMPLE,
    "office": hostile_archives.SAMPLE_OFFICE,
    "epub": hostile_archives.SAMPLE_BOOK,
    "feed": hostile_texts.SAMPLE_FEED,
    "mail": hostile_texts.SAMPLE_MAIL,
}
"""A good file of each type."""

FILES: tuple[Callable[[], Iterator[Hostile]], ...] = (
    hostile_pdfs.files,
    hostile_archives.office_files,
    hostile_archives.book_files,
    hostile_texts.feed_files,
    hostile_texts.mail_files,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file: its end, seconds of processor time, MB that its process held, MB of its text."""

    file: Hostile
    end: str
    seconds: float
    peak: float = 0.0
    size: float = 0.0
    shows: bool = False

    @property
    def fault(self) -> str:
        """What is wrong with it, "" if nothing is."""
        ends = self.file.ends or ALLOWED
        wrong = {
            f"ended as {self.end}, not in {'/'.join(ends)}": self.end not in ends,
            "shows what another file has": self.shows,
            f"wrote {self.size:.0f} MB": self.size > TEXT_MB,
        }
        return "; ".join(name for name, is_so in wrong.items() if is_so)


def files() -> Iterator[Hostile]:
    """Yield all hostile files of the types that are brought; each gets bytes of no type and those of the others."""
    types = brought_types()
    for make in FILES:
        yield from (file for file in make() if file.type in types)
    for name in types:
        yield from _foreign(name)


def _foreign(name: str) -> Iterator[Hostile]:
    draw = random.Random(f"{SEED}:{name}")
    yield Hostile(f"{name}_nothing", name, b"")
    yield Hostile(f"{name}_one_byte", name, b"\x00")
    yield Hostile(f"{name}_only_zeros", name, bytes(1 << 20))
    yield Hostile(f"{name}_noise", name, draw.randbytes(1 << 18))
    yield Hostile(f"{name}_text", name, b"The station writes one line every ten minutes.\n" * 1000)
    yield from (Hostile(f"{name}_is_{other}", name, body) for other, body in SAMPLES.items() if other != name)
    if sample := SAMPLES.get(name):
        yield Hostile(f"{name}_good", name, sample, ("text",))
        yield from (Hostile(f"{name}_mutant_{at}", name, _mutant(sample, draw)) for at in range(MUTANTS))


def _mutant(sample: bytes, draw: random.Random) -> bytes:
    """Return a file with bits turned, and a part that is repeated or lost."""
    body = bytearray(sample)
    for _ in range(max(len(body) // 200, 3)):
        body[draw.randrange(len(body))] ^= 1 << draw.randrange(8)
    start = draw.randrange(len(body))
    part = bytes(body[start : start + draw.randrange(1, 200)])
    return bytes(body[:start] + part * draw.randrange(3) + body[start + len(part) :])


# --- Processes --------------------------------------------------------------------------------------------------


def outcomes(listed: Iterable[Hostile]) -> Iterator[Outcome]:
    """Yield what becomes of each file, in order: a process that has loaded the readers forks one for each."""
    command = [sys.executable, "-m", "tests.file_types.hostile", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for file in listed:
            server.stdin.write(json.dumps([file.type, len(file.body), file.absent]).encode() + b"\n" + file.body)
            server.stdin.flush()
            yield Outcome(file, **json.loads(server.stdout.readline()))
        server.stdin.close()


def serve() -> None:
    """Answer each file that standard input brings with a line."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for card in brought_types().values():
        _reader(card.name)
    while line := requests.readline():
        name, size, absent = json.loads(line)
        replies.write(json.dumps(_watched(name, requests.read(size), absent)) + "\n")
        replies.flush()


def _reader(name: str) -> Callable[[bytes], FileText]:
    return reader_at(brought_types()[name].read)


def _watched(name: str, body: bytes, absent: str) -> dict[str, Any]:
    """Return what becomes of bytes in a process of their own."""
    read, write = os.pipe()
    if not (child := os.fork()):
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        os.write(write, json.dumps(_told(name, body, absent)).encode())
        os._exit(0)
    os.close(write)
    is_ready, _, _ = select.select([read], [], [], 30 * SECONDS)  # against what waits for ever without working
    told = os.read(read, 1 << 16) if is_ready else b""
    os.close(read)
    if not told:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, 0 if is_ready else signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    if told:
        return {**json.loads(told)}
    number = os.waitstatus_to_exitcode(status)
    facts = {"seconds": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss / 1e3}
    if number == -signal.SIGPROF:
        return {"end": "timeout", **facts}
    is_full = number in _BY_MEMORY and usage.ru_maxrss * 1024 > MEMORY // 4
    return {"end": "memory" if is_full else f"signal {-number}" if is_ready else "hang", **facts}


_BY_MEMORY = (-signal.SIGABRT, -signal.SIGTRAP, -signal.SIGSEGV, -signal.SIGILL)
"""How native code ends that gets no memory; a process that held little of it ended for another reason."""


def _told(name: str, body: bytes, absent: str) -> dict[str, Any]:
    """Read bytes, and return how it ended."""
    if fault := _held(name, body):
        return {"end": fault, "seconds": 0.0}
    started, text, size = time.process_time(), "", 0.0
    try:
        found = _reader(name)(body)
        text, size = "".join(found.parts), sum(len(part.encode("utf-8", "ignore")) for part in found.parts) / 1e6
        end = _end(found, text)
    except FileRefused as refusal:
        end = str(refusal.args[0]) if refusal.args[0] in REFUSED else f"refused as {refusal.args!r}"
    except MemoryError:
        end = "memory"
    except BaseException as error:  # noqa: BLE001 -- whatever a reader raises is its fault
        end = f"crash {type(error).__name__}: {error}"[:200]
    return {
        "end": end,
        "seconds": time.process_time() - started,
        "peak": peak_kb() / 1e3,
        "size": size,
        "shows": bool(absent) and absent in text,
    }


def _held(name: str, body: bytes) -> str:
    """Return what is wrong with how a type looks at bytes outside of any sandbox, "" if nothing is."""
    card, started, before = brought_types()[name], time.process_time(), peak_kb()
    try:
        for place in filter(None, (card.holds, card.holds_plain)):
            cast("Callable[[bytes], bool]", function_at(place))(body)
    except BaseException as error:  # noqa: BLE001 -- as above
        return f"look crashed: {type(error).__name__}: {error}"[:200]
    seconds, grown = time.process_time() - started, (peak_kb() - before) / 1e3
    is_slow = seconds > LOOK_SECONDS or grown > LOOK_MB + 2 * len(body) / 1e6
    return f"look took {seconds:.1f} s and {grown:.0f} MB" if is_slow else ""


def _end(found: FileText, text: str) -> str:
    if not all(0 < number <= len(found.parts) for number in found.unread):
        return f"unread pages {found.unread[:9]} of {len(found.parts)}"
    if any(said is not None and not isinstance(said, str) for said in (found.title, found.language, found.published)):
        return "facts that are no text"
    if text.strip():
        return "cut" if found.is_cut else "text"
    return "unread" if found.unread else "empty"


def main() -> None:
    """Print what becomes of each file, or of those whose names begin as told."""
    names = tuple(sys.argv[1:])
    Path(hostile_archives.MARKED).write_text(hostile_archives.MARKER)
    listed = [file for file in files() if not names or file.name.startswith(names)]
    for outcome in outcomes(listed):
        facts = f"{outcome.seconds:7.2f} s {outcome.peak:6.0f} MB {outcome.size:6.1f} MB"
        print(f"{outcome.file.name:<36}{facts} {outcome.end:<12} {outcome.fault}", flush=True)
    Path(hostile_archives.MARKED).unlink()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
