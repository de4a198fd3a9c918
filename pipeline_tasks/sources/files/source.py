"""Files of a folder or prefix as a source: tables of text, and what a landing reads as it is."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import orjson
import pyarrow as pa

from pipeline_tasks.constraints import Note, Uri, Word, is_bucket
from pipeline_tasks.errors import RecipeError, SourceBusy
from pipeline_tasks.landing.first_look import UNREAD
from pipeline_tasks.landing.folder import hidden_part
from pipeline_tasks.landing.json_lines import LINE_CAP, names_of
from pipeline_tasks.sealed import canonical
from pipeline_tasks.sources.admission import connect
from pipeline_tasks.sources.documents import COLUMNS, Document, batches_of, grouped
from pipeline_tasks.sources.fields import Fields, asked_before, names_at_source, stated_terms
from pipeline_tasks.sources.files import mediawiki
from pipeline_tasks.sources.files.contents import PACKED, content_of
from pipeline_tasks.sources.files.copied import copy_part, require_parquet, require_whole
from pipeline_tasks.sources.files.delimited import OTHER_FORM, Form, read_delimited
from pipeline_tasks.sources.files.mbox import HTML, read_messages
from pipeline_tasks.sources.files.xml_records import read_records
from pipeline_tasks.sources.first_records import require_text
from pipeline_tasks.sources.in_place import locate, query_of, require_bucket
from pipeline_tasks.sources.lines_part import write_lines
from pipeline_tasks.sources.parquet_part import require_columns, write_part
from pipeline_tasks.sources.source import UNKNOWN, Flow, Occasion, Part, Received, Terms
from pipeline_tasks.sources.web import Web
from pipeline_tasks.store.named_store import StoreName
from pipeline_tasks.store.protocol import Entry

ENDINGS: Mapping[str, tuple[str, ...]] = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "warc": (".warc", ".arc", ".wet", ".wat"),
    "parquet": (".parquet",),
    "mediawiki": (".xml",),
    "xml": (".xml",),
    "mbox": (".mbox", ".mbx"),
    "text": (".txt", ".text", ".md", ".markdown", ".rst"),
}
"""Forms of files, and how the names of such files end, before an ending of compression."""

AS_IS = ("jsonl", "warc", "parquet")
"""Forms that a landing reads as they are."""

UTF8 = "utf-8"

DELIMITERS = {"csv": ",", "tsv": "\t"}

ElementPath = Annotated[
    str, Word(r"(?:[^\s/]+(?:/[^\s/]+)*)?", "a path of elements from the root, as posts/row, or empty")
]

Delimiter = Annotated[str, Word(r"[^\r\n\"]?", "one character, no quote or line break, or empty: the form's own")]


@dataclass(frozen=True, slots=True)
class Files:
    """The files below `place`, or the one there, that have a form: those that match a pattern of `include`.

    Without patterns those with the form's ending. Hidden files, and those that match `exclude`, are left out.
    `encoding`, `delimiter` and `columns`, names of columns where there is no header, are of CSV and TSV; `record`, the
    path of elements from the root (`posts/row`), is of XML. A file of `text` is one document. `store` is that of a
    bucket, if it is another than the process's own; files that are `in_place` stay there. `listed` is the digest of
    the names, sizes and times of all files: as long as it is the same, the same is asked.
    """

    place: Uri
    format: Literal["csv", "tsv", "jsonl", "warc", "parquet", "mediawiki", "xml", "mbox", "text"]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    fields: Fields = field(default_factory=dict)
    encoding: str = UTF8
    delimiter: Delimiter = ""
    columns: tuple[str, ...] = ()
    record: ElementPath = ""
    terms_address: str = ""
    terms_text: Note = ""
    in_place: bool = False
    store: StoreName = ""
    snapshot: str = ""
    listed: str = ""

    @property
    def cursor(self) -> str:
        return self.listed

    @property
    def terms(self) -> Terms:
        return stated_terms(self.place, self.terms_address, self.terms_text)

    @property
    def typical_bytes(self) -> int:
        return sum(entry.bytes for entry in self.files) // len(self.files)

    @property
    def files(self) -> tuple[Entry, ...]:
        """The files, sorted by path; SourceBusy if they are not those that the query was resolved for."""
        return _listed(_chosen(self), self.listed)

    @property
    def read_by(self) -> dict[str, str]:
        own = {"html": HTML} if self.format == "mbox" else {}
        return {**own, **names_at_source(self.fields)}

    def query(self) -> Mapping[str, Any]:
        return {
            "source": "files",
            "place": self.place,
            "format": self.format,
            "include": list(self.include),
            "exclude": list(self.exclude),
            "fields": dict(self.fields),
            "encoding": self.encoding,
            "delimiter": self.delimiter,
            "columns": list(self.columns),
            "record": self.record,
            "snapshot": self.snapshot,
            "listed": self.listed,
            **query_of(in_place=self.in_place, store=self.store),
        }

    def resolved(self, occasion: Occasion) -> "Files":
        """Return the query of the files that are there now: that of a pull which began or landed, if they are the same.

        RecipeError where there are none.
        """
        names_at_source(self.fields)
        _require_form(self)
        require_bucket(self.place, in_place=self.in_place, store=self.store)
        query = _of_folder(self)
        entries = _chosen(query).entries()
        if not entries:
            raise _without_files(query)
        _require_read(query, entries)
        query = replace(query, listed=_digest(entries))
        before = asked_before(query.query(), ("snapshot",), occasion.unfinished, occasion.before.get("query", {}))
        moment = f"{occasion.name}-{occasion.moment:%Y%m%dT%H%M%SZ}"
        return replace(query, snapshot=before["snapshot"] if before else moment)

    def parts(self, web: Web) -> Sequence[Part]:  # noqa: ARG002 -- a source's signature
        if self.format == "text":
            firsts = [group[0].path for group in self.groups]
            return [Part(f"part-{at:05d}.parquet", f"{self.place}/{path}") for at, path in enumerate(firsts)]
        names = [(_part_name(self, entry.path), entry) for entry in self.files]
        by_name = dict(names)
        if len(by_name) < len(names):
            twice = next(name for name, entry in names if by_name[name] is not entry)
            message = f"{self.place} has two files that would both land as {twice!a}; exclude one of them"
            raise RecipeError(message)
        return [self._part(name, entry) for name, entry in names]

    def _part(self, name: str, entry: Entry) -> Part:
        as_is = name == entry.path
        return Part(name, f"{self.place}/{entry.path}", entry.bytes if as_is else UNKNOWN)

    @property
    def groups(self) -> Sequence[Sequence[Entry]]:
        """The files of each part, where many files are one."""
        return grouped((entry, entry.bytes) for entry in self.files)

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        if self.in_place:
            return locate(web, part, self.store)
        if self.format == "text":
            return self._documents(web, part, partial, flow)
        if self.format in AS_IS:
            received = copy_part(part, partial, web, flow, self.store)
        else:
            received = self._converted(web, part, partial, flow)
            self._require_unchanged(part.address)
        if part.name.endswith(".parquet") and self.format not in AS_IS:
            return received  # whose columns were looked at first
        if self.format == "parquet":
            require_parquet(partial, part.address)
        elif self.format in AS_IS:
            require_whole(partial, part.address)
        require_text(partial, part.name, part.address, self.read_by)
        return received

    def _converted(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        with content_of(part.address, self.store) as stream:
            if self.format in ("xml", "mbox"):
                return write_lines(self._lines(stream, part.address), part, partial, web, flow)
            schema, batches = self._table(stream, part.address)
            self._require_columns(schema, part.address)
            return write_part(batches, schema, part, partial, web, flow)

    def _require_columns(self, schema: pa.Schema, uri: str) -> None:
        try:
            require_columns(schema, self.read_by, uri)
        except RecipeError as error:
            if self.format not in DELIMITERS:
                raise
            message = f"{error}. {OTHER_FORM}"
            raise RecipeError(message) from error

    def _require_unchanged(self, uri: str) -> None:
        """Raise SourceBusy for a file that has other bytes now than when it was listed."""
        path = uri.removeprefix(f"{self.place}/")
        listed = _sizes(_chosen(self), self.listed)[path]
        there = connect(self.place, self.store).size(path)
        if there != listed:
            message = f"{uri} has {there} bytes, and had {listed:,} when it was listed; pull it when it rests"
            raise SourceBusy(message)

    def _lines(self, stream: BinaryIO, uri: str) -> Iterator[bytes]:
        if self.format == "mbox":
            yield from read_messages(stream, uri)
            return
        for record in read_records(stream, uri, self.record):
            value = record.value if isinstance(record.value, dict) else {"text": record.value}
            yield orjson.dumps(value, option=orjson.OPT_SORT_KEYS)

    def _table(self, stream: BinaryIO, uri: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        if self.format == "mediawiki":
            return mediawiki.COLUMNS, mediawiki.read_pages(stream, uri)
        names = names_of(self.read_by)
        form = Form(self.encoding, self.delimiter or DELIMITERS[self.format], self.columns)
        return read_delimited(stream, uri, form, (*names["text"], *names["html"]))

    def _documents(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        left_out: Counter[str] = Counter()
        files = self.groups[int(part.name[len("part-") : -len(".parquet")])]
        batches = batches_of(map(self._document, files), left_out)
        require_columns(COLUMNS, self.read_by, part.address)
        received = write_part(batches, COLUMNS, part, partial, web, flow)
        for entry in files:
            self._require_unchanged(f"{self.place}/{entry.path}")
        return replace(received, facts={"left_out": dict(left_out)} if left_out else {})

    def _document(self, entry: Entry) -> Document:
        uri = f"{self.place}/{entry.path}"
        with content_of(uri, self.store) as stream:
            data = stream.read(LINE_CAP + 1)
        return Document(entry.path, uri if is_bucket(uri) else Path(uri).as_uri(), data)


def _of_folder(query: Files) -> Files:
    """Return a query whose place is a folder: one of a single file asks for that of its folder."""
    root = connect(query.place, query.store).root
    folder, _, name = root.rpartition("/")
    has_folder = bool(folder) and not folder.endswith("/")  # a bucket has none
    if has_folder and connect(folder, query.store).size(name) is not None:
        return replace(query, place=folder, include=(escape(name),))
    return replace(query, place=root)


def _require_form(query: Files) -> None:
    """Raise RecipeError for what a form has not, and an encoding that nobody knows."""
    if query.format not in DELIMITERS and (query.delimiter or query.columns):
        message = f"delimiter and columns are of csv and tsv, and these files are {query.format}; remove them"
        raise RecipeError(message)
    if query.format not in DELIMITERS and query.encoding != UTF8:
        message = f"encoding {query.encoding[:50]!a} is of csv and tsv, and these files are {query.format}; remove it"
        raise RecipeError(message)
    if query.format == "xml" and not query.record:
        message = "files of xml need `record`, the path of elements of one record from the root, as posts/row"
        raise RecipeError(message)
    if query.record and query.format != "xml":
        message = f"record is of xml, and these files are {query.format}; remove it"
        raise RecipeError(message)
    if query.in_place and query.format not in AS_IS:
        message = (
            f"in_place is of {', '.join(AS_IS)}, which a run reads as they are, and these files are {query.format}"
        )
        raise RecipeError(message)
    try:
        "".encode(query.encoding)
    except (LookupError, ValueError) as error:
        message = f"encoding {query.encoding[:50]!a} is none that Python knows, as utf-8, latin-1 or cp1252"
        raise RecipeError(message) from error


def _without_files(query: Files) -> RecipeError:
    """Return the refusal of a place without files of the form: it is not there, or has others."""
    if not any(True for _ in connect(query.place, query.store).list("")):
        is_folder = not is_bucket(query.place) and Path(query.place).is_dir()
        state = "is empty" if is_folder else "does not exist, or has no objects"
        return RecipeError(f"{query.place} {state}; correct `place`")
    patterns = ", ".join(query.include) or ", ".join(ENDINGS[query.format])
    return RecipeError(f"{query.place} has no {query.format} files ({patterns}); correct place, format or include")


def _require_read(query: Files, entries: Sequence[Entry]) -> None:
    """Raise RecipeError for files that land as they are, and by their names are a table that no landing reads."""
    packed = next((entry.path for entry in entries if entry.path.lower().endswith(".bz2")), None)
    if query.in_place and packed is not None:
        message = f"{query.place}/{packed} is bzip2, which a run does not read in place; exclude it, or land a copy"
        raise RecipeError(message)
    other = next((entry.path for entry in entries if UNREAD.search(entry.path)), None)
    if query.format in AS_IS and other is not None:
        message = f"{query.place}/{other} is no {query.format} file by its name; correct place, format or include"
        raise RecipeError(message)


def _part_name(query: Files, path: str) -> str:
    if query.format in AS_IS:
        return path.removesuffix(".bz2")  # which a landing does not read
    return f"{path}.jsonl" if query.format in ("xml", "mbox") else f"{path}.parquet"


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Which files of a place are chosen."""

    place: str
    endings: tuple[str, ...]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    store: str

    def entries(self) -> tuple[Entry, ...]:
        """List them, sorted by path."""
        return tuple(
            entry
            for entry in connect(self.place, self.store).list("")
            if not hidden_part(entry.path)
            and (_matches(entry.path, self.include) if self.include else entry.path.lower().endswith(self.endings))
            and not _matches(entry.path, self.exclude)
        )


def _chosen(query: Files) -> _Chosen:
    endings = tuple(f"{ending}{packed}" for ending in ENDINGS[query.format] for packed in ("", *PACKED))
    return _Chosen(query.place, endings, query.include, query.exclude, query.store)


def _matches(path: str, patterns: Sequence[str]) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in patterns)


def _digest(entries: Sequence[Entry]) -> str:
    return hashlib.sha256(canonical([[entry.path, entry.bytes, entry.modified] for entry in entries])).hexdigest()


@lru_cache(maxsize=4)
def _listed(chosen: _Chosen, listed: str) -> tuple[Entry, ...]:
    """Return the files that a query was resolved for; SourceBusy if there are others now."""
    entries = chosen.entries()
    if _digest(entries) != listed:
        message = f"{chosen.place} has changed since it was listed; run the same command again when it rests"
        raise SourceBusy(message)
    return entries


@lru_cache(maxsize=4)
def _sizes(chosen: _Chosen, listed: str) -> dict[str, int]:
    return {entry.path: entry.bytes for entry in _listed(chosen, listed)}


SOURCE = Files
