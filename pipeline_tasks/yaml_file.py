"""Reads a small YAML file that a person wrote: bounded, UTF-8, without tags and duplicate keys."""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pipeline_tasks.errors import RecipeError

MOST_BYTES = 128 << 10
"""A recipe has about 1 kB; one that names a bound for each of 2,000 languages has 50 kB."""

MOST_DEPTH = 16
"""Levels of lists and mappings; a recipe has 6."""

MOST_NODES = 50_000
"""Keys, values and lists, with every alias written out."""

UNREADABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters that no name, path or text of a recipe has: control characters and halves of surrogate pairs."""


def read_yaml(path: Path) -> object:
    """Return what a YAML file says; RecipeError with the path and the line if it is not such a file."""
    return parse_yaml(read_bytes(path), str(path))


def key_lines(path: Path) -> dict[tuple[str, ...], int]:
    """Return the line of each key of a YAML file that can be read, by the keys on the way to it."""
    lines = dict[tuple[str, ...], int]()
    left: list[tuple[tuple[str, ...], Any]] = [((), yaml.compose(_decoded(read_bytes(path), str(path)), _FastLoader))]
    while left:
        above, node = left.pop()
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            keys = (*above, str(key.value))
            lines[keys] = key.start_mark.line + 1
            left.append((keys, value))
    return lines


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes; RecipeError for anything else."""
    try:
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind):
            message = f"{path} is {'a folder' if stat.S_ISDIR(kind) else 'no regular file'}; give the path of a file"
            raise RecipeError(message)
        with path.open("rb") as stream:
            body = stream.read(most + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, RecipeError):
            raise
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        message = f"{path} cannot be read ({reason}); correct the path or its permissions"
        raise RecipeError(message) from error
    if len(body) > most:
        message = f"{path} has more than {most:,} bytes; no file of this kind is so large: correct the path"
        raise RecipeError(message)
    return body


def parse_yaml(body: bytes, where: str) -> object:
    """Return what YAML says; RecipeError names `where` and, where it is known, the line."""
    if len(body) > MOST_BYTES:
        message = f"{where} has more than {MOST_BYTES:,} bytes; write a shorter one"
        raise RecipeError(message)
    text = _decoded(body, where)
    with contextlib.suppress(yaml.YAMLError, ValueError, OverflowError):  # the parser in Python says what is wrong
        return _parsed(text, where, _FastLoader)
    try:
        return _parsed(text, where, _Loader)
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark  # typed as what only one of PyYAML's two parsers gives
        line = f" (line {mark.line + 1})" if mark else ""
        message = f"{where} is not YAML{line}: {error.problem or error.context}"
        raise RecipeError(message) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # a date such as 2026-13-45, 5,000 digits
        if isinstance(error, RecipeError):
            raise
        message = f"{where} is not YAML: {' '.join(str(error).split())[:200]}"
        raise RecipeError(message) from error


def _parsed(text: str, where: str, loader: "type[_Loader | _FastLoader]") -> object:
    _check_events(yaml.parse(text, Loader=loader), where)
    return yaml.load(text, Loader=loader)  # noqa: S506 -- a SafeLoader that also refuses duplicate keys


def _decoded(body: bytes, where: str) -> str:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{where} is not UTF-8 (byte {error.start + 1:,}); save it as UTF-8"
        raise RecipeError(message) from error
    if unreadable := re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text):
        line = text.count("\n", 0, unreadable.start()) + 1
        message = f"{where}: line {line} has the control character {unreadable[0]!r}; save it as UTF-8 text"
        raise RecipeError(message)
    return text


OLD_NUMBERS = (
    (re.compile("[-+]?0[0-7_]+"), "an octal number to YAML: write it without the first 0"),
    (re.compile("[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+(\\.[0-9_]*)?"), "a number of base 60 to YAML"),
)
"""Words that YAML 1.1, which PyYAML reads, takes for other numbers than a person means."""


@dataclass(slots=True)
class _Extent:
    """A node with all below it, aliases written out: its anchor, its number of nodes, and its levels."""

    anchor: str = ""
    nodes: int = 1
    levels: int = 1

    def add(self, inner: "_Extent") -> None:
        """Add a node below this one."""
        self.nodes += inner.nodes
        self.levels = max(self.levels, inner.levels + 1)


def _check_events(events: Iterable[yaml.Event], where: str) -> None:
    """Raise RecipeError at the first tag, control character, or node that is too large with its aliases written out."""
    path, anchors = [_Extent()], dict[str, _Extent]()
    for event in events:
        problem = _text_problem(event)
        if isinstance(event, yaml.CollectionStartEvent):
            path.append(_Extent(event.anchor or ""))
        elif isinstance(event, yaml.CollectionEndEvent | yaml.ScalarEvent | yaml.AliasEvent):
            extent = path.pop() if isinstance(event, yaml.CollectionEndEvent) else _leaf(event, anchors)
            anchors[extent.anchor] = extent
            path[-1].add(extent)
        problem = problem or _size_problem(path)
        if problem:
            mark: Any = event.start_mark
            message = f"{where}: line {mark.line + 1}: {problem}"
            raise RecipeError(message)


def _leaf(event: yaml.Event, anchors: Mapping[str, _Extent]) -> _Extent:
    """Return the extent of a text, or of what an alias stands for: an endless one if it stands for itself."""
    anchor = str(getattr(event, "anchor", None) or "")
    if isinstance(event, yaml.AliasEvent):
        return anchors.get(anchor, _Extent(anchor, levels=MOST_DEPTH + 1))
    return _Extent(anchor)


def _text_problem(event: yaml.Event) -> str:
    if tag := getattr(event, "tag", None):
        return f"the tag {tag!r} is not read; write the value without it"
    if isinstance(event, yaml.ScalarEvent) and UNREADABLE.search(event.value):
        return f"{event.value[:40]!r} has a control character; write the text without it"
    if isinstance(event, yaml.ScalarEvent) and not event.style:
        kinds = (kind for pattern, kind in OLD_NUMBERS if pattern.fullmatch(event.value))
        return next((f"{event.value[:40]} is {kind}, or quote it if it is a text" for kind in kinds), "")
    return ""


def _size_problem(path: Sequence[_Extent]) -> str:
    if len(path) + path[-1].levels - 2 > MOST_DEPTH:
        return f"more than {MOST_DEPTH} levels of lists and mappings"
    if sum(extent.nodes for extent in path) > MOST_NODES:
        return f"more than {MOST_NODES:,} values (aliases count as what they stand for)"
    return ""


class _UniqueKeys(yaml.constructor.SafeConstructor):
    """A constructor for which a duplicate key is an error, and not a silent replacement."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT002 -- PyYAML's signature
        seen: dict[Any, int] = {}
        for key_node, _ in node.value:
            key, line = key_node.value, key_node.start_mark.line + 1
            if isinstance(key, str) and key in seen:
                message = f"the key {key!r} is already on line {seen[key]}; remove one of the two"
                raise yaml.constructor.ConstructorError(None, None, message, key_node.start_mark)
            if isinstance(key, str):
                seen[key] = line
        return super().construct_mapping(node, deep)


class _Loader(_UniqueKeys, yaml.SafeLoader):
    """PyYAML's own parser."""


class _FastLoader(_UniqueKeys, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # one of two classes
    """The parser of libyaml, which every wheel of PyYAML has: it takes a tenth of the time."""
