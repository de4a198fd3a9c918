"""Outputs that the documentation shows: the command that prints each, which of its lines are shown, and what may vary.

An output is a block of `text` below a comment that names its command:

    <!-- output: refinery look funnel .refinery/demo/root
         lines: demo version; ingest +2; dedup_minhash +1 -->

Commands joined by ` && ` run in order, and the last one's output is shown. A file that they read is a block of `yaml`
below `<!-- file: NAME -->`. `lines` names the parts that are shown: a part begins at the next line that has its words,
and `+2` takes two more lines. Without it, every line is shown. What is left out between and after the parts is shown as
`...`, and so is the rest of a long line. Lines that a slow machine, the first use of an engine or loops that are not
compiled yet add are left out, and the partitions of a stage are shown in order.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.run.loops import COMPILING

WIDTH = 160
"""Characters of a line that are shown."""

CUT = "..."

AND = " && "

_OUTPUT = re.compile(
    r"^<!-- output: (?P<command>[^\n]+?)(?:\n +lines: (?P<lines>[^\n]+?))? -->\n```text\n(?P<shown>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

_FILE = re.compile(r"^<!-- file: (?P<name>[\w.-]+) -->\n```yaml\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

_ADDED = re.compile(
    r"^ *[\d.]+ s  (\w+ +[\d,]+ of [\d,]+ tasks? done, .*|[\w ]+ starts?( at .*)?)$"
    rf"|^{re.escape(COMPILING)}( \d+ of \d+)?$"
)
"""Lines of a run that say how far a stage is after ten silent seconds, what starts, or what this machine compiles."""

_PARTITION = re.compile(r"^ *[\d.]+ s  (?P<stage>\w+) +partition (?P<number>\d+)/")

VARIES = (
    (r" *\b[\d,]+(\.\d+)? s\b", " # s"),
    (r"[\d,.]+ MB read", "# MB read"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b", "DATE TIME"),
    (r"\b(?<=/)[0-9a-f]{24,64}\b", "DIGEST"),
    (r"(?m)^(head +\S+ \d+: )[0-9a-f]{64}$", r"\1DIGEST"),
    (
        r"(?m)( manifests and the ledger\n  crawl .*\n  compute  )[\d,]+ core-hours: [\d,]+ cores? for (.*), \$[\d,]+$",
        r"\1# core-hours: # cores for \2, $#",
    ),
    (r"(?m)(, \$#\n  storage  )[\d.]+ \wB( with the crawl, for .*), \$[\d,]+$", r"\1#\2, $#"),
    (r"(?m)^(  \w+ +(?:[\d.]+%|-) +[\d.]+ \wB) +[\d,]+ +[\d.]+ \wB  ledger$", r"\1 # #  ledger"),
    (r"(?m)^(  (?!tokens)\w[\w ]*?)( +[\d.]+ \wB, [\d.]+ \wB)? +[\d.,e+]+, [\d.,e+]+ +[\d.]+$", r"\1\2 # #"),
)
"""What differs from run to run or from machine to machine, with what stands for it in a comparison: seconds and what
follows from them, the size of what is stored with its time, times, and digests of what has a time or the version of a
package."""


class Part(NamedTuple):
    """Lines of an output that are shown: the next one that has `words`, and `more` after it."""

    words: str
    more: int


class Output(NamedTuple):
    """An output that a page shows: its commands in order, its parts (none: all of it), and the text of its block."""

    commands: tuple[str, ...]
    parts: tuple[Part, ...]
    shown: str


def outputs_of(page: str) -> list[Output]:
    """Return the outputs that a page shows, in order."""
    return [_output(match) for match in _OUTPUT.finditer(page)]


def files_of(page: str) -> dict[str, str]:
    """Return the files that a page shows for its commands, by name."""
    return {match["name"]: match["text"] for match in _FILE.finditer(page)}


def with_outputs(page: str, printed: Callable[[Sequence[str]], str]) -> str:
    """Return a page with its outputs as they are `printed` by their commands; one that says the same is not changed."""

    def renewed(match: re.Match[str]) -> str:
        output = _output(match)
        now = excerpt(printed(output.commands), output.parts)
        if comparable(now) == comparable(output.shown):
            return match[0]
        head = match[0].removesuffix(f"{output.shown}```")
        return f"{head}{now}```"

    return _OUTPUT.sub(renewed, page)


def _output(match: re.Match[str]) -> Output:
    parts = (part.strip() for part in (match["lines"] or "").split(";"))
    return Output(tuple(match["command"].split(AND)), tuple(_part(part) for part in parts if part), match["shown"])


def _part(text: str) -> Part:
    words, plus, more = text.rpartition(" +")
    return Part(words, int(more)) if plus else Part(text, 0)


def excerpt(printed: str, parts: Sequence[Part]) -> str:
    """Return the lines of an output that its parts show; RecipeError if a part is not in it."""
    lines = [_short(line.rstrip()) for line in printed.strip("\n").split("\n") if not _ADDED.match(line)]
    lines = [line for _, same in groupby(lines, _stage) for line in sorted(same, key=_number)]
    shown = _chosen(lines, parts) if parts else lines
    return "".join(f"{line}\n" for line in shown)


def _stage(line: str) -> str:
    partition = _PARTITION.match(line)
    return partition["stage"] if partition else ""


def _number(line: str) -> int:
    partition = _PARTITION.match(line)
    return int(partition["number"]) if partition else 0


def _chosen(lines: Sequence[str], parts: Sequence[Part]) -> Iterator[str]:
    after = 0
    for number, part in enumerate(parts):
        first = next((at for at in range(after, len(lines)) if part.words in " ".join(lines[at].split())), None)
        if first is None:
            message = f"no line of the output has {part.words!r}; it is:\n" + "\n".join(lines)
            raise RecipeError(message)
        if number and first > after:
            yield CUT
        after = first + 1 + part.more
        yield from lines[first:after]
    if after < len(lines):
        yield CUT


def _short(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: line.rfind(' ', 0, WIDTH - len(CUT))]} {CUT}"


def comparable(text: str) -> str:
    """Return an output with a mark for everything that varies."""
    for pattern, mark in VARIES:
        text = re.sub(pattern, mark, text)
    return text
