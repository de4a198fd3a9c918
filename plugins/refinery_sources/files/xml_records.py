"""Reads an XML file as records: the elements at one path, each with what its ancestors say, in memory of one record.

A file that declares entities is refused: a few of them make gigabytes of text (the "billion laughs"). Nothing outside
the file is ever opened.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple, NoReturn
from xml.parsers import expat

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.landing.json_lines import LINE_CAP

CHUNK = 1 << 18

DEEPEST = 200
"""Elements in elements."""

SEEN = 20
"""Paths of elements that an error names."""

TEXT = "_text"
"""The own text of an element that has attributes or children besides."""

Value = str | dict[str, Any]
"""An element: its text, or an object of its attributes and children; an element that comes again makes a list."""


class Record(NamedTuple):
    """An element at the path, and of each of its ancestors, the root first, what is kept of what goes before it."""

    value: Value
    ancestors: Sequence[dict[str, Any]]


@dataclass(slots=True)
class _Element:
    """An open element; `is_ancestor` of records, or `is_kept` as one, in one, or as what an ancestor says."""

    name: str
    is_ancestor: bool = False
    is_record: bool = False
    is_kept: bool = False
    fields: dict[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def value(self) -> Value:
        text = "".join(self.texts)
        if not self.fields:
            return text
        return {**self.fields, TEXT: text} if text.strip() else self.fields

    def add(self, name: str, value: Value) -> None:
        if name not in self.fields:
            self.fields[name] = value
        elif isinstance(self.fields[name], list):
            self.fields[name].append(value)
        else:
            self.fields[name] = [self.fields[name], value]


class _Parser:
    """Expat's events as records of one path."""

    def __init__(self, path: Sequence[str], around: Collection[str], uri: str) -> None:
        self._path, self._around, self._uri = path, around, uri
        self._open: list[_Element] = []
        self._size = 0
        self.seen: dict[str, None] = {}
        self.records = 0
        self.ready: list[Record] = []
        self.expat = expat.ParserCreate()
        self.expat.buffer_text = True
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.CharacterDataHandler = self._text
        self.expat.EntityDeclHandler = self._entity

    def refuse(self, why: str) -> NoReturn:
        message = f"{self._uri}, line {self.expat.CurrentLineNumber:,}: {why}"
        raise ContractError(message)

    def _entity(self, *_declared: object) -> None:
        self.refuse("it declares an entity, and such files are not read: write the text of entities in their places")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) == DEEPEST:
            self.refuse(f"more than {DEEPEST} elements in each other")
        element = self._placed(_local(name))
        self._open.append(element)
        if element.is_kept:
            element.fields = {_local(key): value for key, value in attributes.items() if not key.startswith("xml")}
            self._count(sum(map(len, element.fields.values())))
        elif len(self.seen) < SEEN:
            self.seen["/".join(element.name for element in self._open)] = None

    def _placed(self, name: str) -> _Element:
        """Return a new element with what it is to the records."""
        depth = len(self._open)
        parent = self._open[-1] if self._open else _Element("", is_ancestor=True)
        if parent.is_kept:
            return _Element(name, is_kept=True)
        is_on_path = parent.is_ancestor and name == self._path[depth]
        is_record = is_on_path and depth + 1 == len(self._path)
        is_around = parent.is_ancestor and name in self._around
        return _Element(name, is_on_path and not is_record, is_record, is_record or (is_around and not is_on_path))

    def _text(self, text: str) -> None:
        if self._open[-1].is_kept:
            self._open[-1].texts.append(text)
            self._count(len(text))

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > LINE_CAP:
            self.refuse(f"a record of more than {LINE_CAP:,} characters")

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        if element.is_record:
            self.ready.append(Record(element.value(), [dict(parent.fields) for parent in self._open]))
            self.records += 1
            self._size = 0
        elif element.is_kept:
            self._open[-1].add(element.name, element.value())


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def read_records(stream: BinaryIO, uri: str, path: str, around: Collection[str] = ()) -> Iterator[Record]:
    """Yield the records at `path` (`posts/row`, from the root), in order; of ancestors the elements `around` are kept.

    ContractError, which names the line, for XML that is cut, damaged, declares entities, or has a record that is too
    large; RecipeError, which names elements that there are, if there is none at the path.
    """
    parser = _Parser(path.split("/"), around, uri)
    while True:
        chunk = stream.read(CHUNK)
        try:
            parser.expat.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            parser.refuse(f"{expat.ErrorString(error.code)}; the file is cut or damaged")
        yield from parser.ready
        parser.ready.clear()
        if not chunk:
            break
    if not parser.records:
        message = f"{uri} has no element {path}; it has {', '.join(parser.seen)}"
        raise RecipeError(message)
