"""Files of a folder, a prefix or the web as a source: tables of text, and what a landing reads as it is."""

import contextlib
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

from pipeline_tasks.constraints import Note, OptionalPath, Uri, Word, is_bucket, on_web
from pipeline_tasks.errors import RecipeError, SourceBusy
from pipeline_tasks.landing.first_look import UNREAD
from pipeline_tasks.landing.folder import hidden_part
from pipeline_tasks.landing.json_lines import LINE_CAP, names_of
from pipeline_tasks.landing.listing import PROMISE
from pipeline_tasks.sealed import canonical
from pipeline_tasks.store.named_store import StoreName
from refinery_sources.admission import connect
from refinery_sources.documents import COLUMNS, Document, batches_of, grouped
from refinery_sources.download import discard, download
from refinery_sources.fields import Fields, asked_before, names_at_source, stated_terms
from refinery_sources.files import mediawiki
from refinery_sources.files.contents import PACKED, content_of
from refinery_sources.files.copied import copy_part, copy_stream, require_parquet, require_whole
from refinery_sources.files.delimited import OTHER_FORM, Form, read_delimited
from refinery_sources.files.mbox import HTML, read_messages
from refinery_sources.files.web_files import (
    File,
    address_of,
    content_on_web,
    discarded_if_damaged,
    named_files,
    path_of,
    web_place,
)
from refinery_sources.files.xml_records import read_records
from refinery_sources.first_records import require_text
from refinery_sources.in_place import locate, query_of, require_bucket
from refinery_sources.lines_part import write_lines
from refinery_sources.parquet_part import require_columns, write_part
from refinery_sources.source import Flow, Occasion, Part, Received, Terms
from refinery_sources.splits import NAME_THEM, log_unasked, unasked_splits
from refinery_sources.web import Web

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

UNCOUNTED = Flow()
"""How the content of a download is written: its bytes were counted as they came."""

Delimiter = Annotated[str, Word(r"[^\r\n\"]?", "one character, no quote or line break, or empty: the form's own")]


@dataclass(frozen=True, slots=True)
class Files:
    """The files below `place`, or the one there, that have a form: those that match a pattern of `include`.

    Without patterns those with the form's ending. Hidden files, and those that match `exclude`, are left out.
    `encoding`, `delimiter` and `columns`, names of columns where there is no header, are of CSV and TSV; `record`, the
    path of elements from the root (`posts/row`), is of XML. A file of `text` is one document. `store` is that of a
    bucket, if it is another than the process's own; files that are `in_place` stay there. A folder of the web
    (`https://host/folder/`) has the files of its `snapshot.json`, or of the list `paths` below it. `listed` is the
    digest of the names, sizes and times of all files: as long as it is the same, the same is asked.
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
    paths: OptionalPath = ""
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
        if on_web(self.place):
            return 0
        files = _listed(_chosen(self), self.listed, None)
        return sum(file.bytes for file in files) // len(files)

    def files(self, web: Web) -> tuple[File, ...]:
        """Return the files, sorted by path; SourceBusy if they are not those that the query was resolved for."""
        return _listed(_chosen(self), self.listed, _asked(self, web))

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
            **({"paths": self.paths} if self.paths else {}),
            **query_of(in_place=self.in_place, store=self.store),
        }

    def resolved(self, occasion: Occasion) -> "Files":
        """Return the query of the files that are there now: that of a pull which began or landed, if they are the same.

        RecipeError where there are none.
        """
        names_at_source(self.fields)
        _require_form(self)
        require_bucket(self.place, in_place=self.in_place, store=self.store)
        query = replace(self, place=web_place(self.place, self.paths)) if on_web(self.place) else _of_folder(self)
        chosen = _chosen(query)
        listed = chosen.listed(_asked(query, occasion.web))
        log_unasked(query.place, chosen.unasked(listed))
        files = chosen.asked(listed)
        if not files:
            raise _without_files(query)
        _require_read(query, files)
        query = replace(query, listed=_digest(files))
        before = asked_before(query.query(), ("snapshot",), occasion.unfinished, occasion.before.get("query", {}))
        moment = f"{occasion.name}-{occasion.moment:%Y%m%dT%H%M%SZ}"
        return replace(query, snapshot=before["snapshot"] if before else moment)

    def parts(self, web: Web) -> Sequence[Part]:
        if self.format == "text":
            return [self._part_of_documents(at, group) for at, group in enumerate(self.groups(web))]
        names = [(_part_name(self, file.path), file) for file in self.files(web)]
        by_name = dict(names)
        if len(by_name) < len(names):
            twice = next(name for name, file in names if by_name[name] is not file)
            message = f"{self.place} has two files that would both land as {twice!a}; exclude one of them"
            raise RecipeError(message)
        return [
            self._of_source(file) if name == file.path else Part(name, self._address(file.path)) for name, file in names
        ]

    def _part_of_documents(self, at: int, group: Sequence[File]) -> Part:
        requests = len(group) if on_web(self.place) else 1
        return Part(f"part-{at:05d}.parquet", self._address(group[0].path), requests=requests)

    def _of_source(self, file: File) -> Part:
        """Return a file as it is at its source, with what is promised of it there."""
        return Part(file.path, self._address(file.path), file.bytes, file.sha256)

    def _address(self, path: str) -> str:
        return address_of(self.place, path) if on_web(self.place) else f"{self.place}/{path}"

    def groups(self, web: Web) -> Sequence[Sequence[File]]:
        """Return the files of each part, where many files are one."""
        return grouped((file, max(file.bytes, 0)) for file in self.files(web))

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        if self.in_place:
            return locate(web, part, self.store)
        if self.format == "text":
            return self._documents(web, part, partial, flow)
        if self.format in AS_IS:
            received = self._copied(web, part, partial, flow)
        else:
            received = self._converted(web, part, partial, flow)
            self._require_unchanged(web, part.address)
        discard(_raw(partial))
        if part.name.endswith(".parquet") and self.format not in AS_IS:
            return received  # whose columns were looked at first
        with discarded_if_damaged(partial):
            if self.format == "parquet":
                require_parquet(partial, part.address)
            elif self.format in AS_IS:
                require_whole(partial, part.address)
            require_text(partial, part.name, part.address, self.read_by)
        return received

    def _copied(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        if not on_web(self.place):
            return copy_part(part, partial, web, flow, self.store)
        if part.name == self._file(web, part.address).path:
            return download(web, part, partial, flow)
        with self._content(web, part.address, _raw(partial), flow) as stream:
            return copy_stream(stream, part, partial, web, UNCOUNTED)

    def _converted(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        with self._content(web, part.address, _raw(partial), flow) as stream:
            flow = UNCOUNTED if on_web(self.place) else flow
            if self.format in ("xml", "mbox"):
                return write_lines(self._lines(stream, part.address), part, partial, web, flow)
            schema, batches = self._table(stream, part.address)
            self._require_columns(schema, part.address)
            return write_part(batches, schema, part, partial, web, flow)

    @contextlib.contextmanager
    def _content(self, web: Web, address: str, raw: Path, flow: Flow) -> Iterator[BinaryIO]:
        """Open the content of a file; one of the web is downloaded to `raw` first."""
        if on_web(self.place):
            with content_on_web(web, self._of_source(self._file(web, address)), raw, flow) as stream:
                yield stream
        else:
            with content_of(address, self.store) as stream:
                yield stream

    def _file(self, web: Web, address: str) -> File:
        """Return the file at an address."""
        path = path_of(self.place, address) if on_web(self.place) else address.removeprefix(f"{self.place}/")
        return _by_path(_chosen(self), self.listed, _asked(self, web))[path]

    def _require_columns(self, schema: pa.Schema, uri: str) -> None:
        try:
            require_columns(schema, self.read_by, uri)
        except RecipeError as error:
            if self.format not in DELIMITERS:
                raise
            message = f"{error}. {OTHER_FORM}"
            raise RecipeError(message) from error

    def _require_unchanged(self, web: Web, uri: str) -> None:
        """Raise SourceBusy for a file of a store that has other bytes now than when it was listed."""
        if on_web(self.place):  # whose bytes were compared as they arrived
            return
        listed = self._file(web, uri)
        there = connect(self.place, self.store).size(listed.path)
        if there != listed.bytes:
            message = f"{uri} has {there} bytes, and had {listed.bytes:,} when it was listed; pull it when it rests"
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
        files = self.groups(web)[int(part.name[len("part-") : -len(".parquet")])]
        documents = (self._document(web, file, _raw(partial, at), flow) for at, file in enumerate(files))
        require_columns(COLUMNS, self.read_by, part.address)
        written = UNCOUNTED if on_web(self.place) else flow
        received = write_part(batches_of(documents, left_out), COLUMNS, part, partial, web, written)
        for at, file in enumerate(files):
            self._require_unchanged(web, self._address(file.path))
            discard(_raw(partial, at))
        return replace(received, facts={"left_out": dict(left_out)} if left_out else {})

    def _document(self, web: Web, file: File, raw: Path, flow: Flow) -> Document:
        uri = self._address(file.path)
        with self._content(web, uri, raw, flow) as stream:
            data = stream.read(LINE_CAP + 1)
        return Document(file.path, uri if is_bucket(uri) or on_web(uri) else Path(uri).as_uri(), data)


def _raw(partial: Path, at: int = 0) -> Path:
    """Return where a file of the web is, as it came, that becomes a part of another form."""
    return partial.with_name(f"{partial.name}.{at}")


def _asked(query: Files, web: Web) -> Web | None:
    """Return what lists the files of a query: the web, or None for a store."""
    return web if on_web(query.place) else None


def _of_folder(query: Files) -> Files:
    """Return a query whose place is a folder: one of a single file asks for that of its folder.

    RecipeError for a list of paths: a store has a list of its own.
    """
    if query.paths:
        message = f"paths is of https://, and {query.place} lists its files by itself; remove it"
        raise RecipeError(message)
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
    if not on_web(query.place) and not any(True for _ in connect(query.place, query.store).list("")):
        is_folder = not is_bucket(query.place) and Path(query.place).is_dir()
        state = "is empty" if is_folder else "does not exist, or has no objects"
        return RecipeError(f"{query.place} {state}; correct `place`")
    patterns = ", ".join(query.include) or ", ".join(ENDINGS[query.format])
    splits = f"; of splits {NAME_THEM}" if _chosen(query).has_splits else ""
    return RecipeError(
        f"{query.place} has no {query.format} files ({patterns}{splits}); correct place, format or include"
    )


def _require_read(query: Files, files: Sequence[File]) -> None:
    """Raise RecipeError for files that land as they are, and by their names are a table that no landing reads."""
    packed = next((file.path for file in files if file.path.lower().endswith(".bz2")), None)
    if query.in_place and packed is not None:
        message = f"{query.place}/{packed} is bzip2, which a run does not read in place; exclude it, or land a copy"
        raise RecipeError(message)
    other = next((file.path for file in files if UNREAD.search(file.path)), None)
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
    paths: str
    has_splits: bool

    def files(self, web: Web | None) -> tuple[File, ...]:
        """List them, sorted by path, by the web, or by the store where that is None."""
        return self.asked(self.listed(web))

    def asked(self, listed: Sequence[File]) -> tuple[File, ...]:
        """Return the listed files without those of splits that nobody asked for."""
        unasked = self.unasked(listed)
        return tuple(file for file in listed if file.path not in unasked)

    def unasked(self, listed: Sequence[File]) -> dict[str, str]:
        """Return the files of other splits than train, by path, with their split."""
        return unasked_splits([file.path for file in listed], self.include) if self.has_splits else {}

    def listed(self, web: Web | None) -> tuple[File, ...]:
        """List the files that patterns and endings choose, of any split."""
        known = (
            named_files(web, self.place, self.paths)
            if web
            else (File(entry.path, entry.bytes, entry.modified) for entry in connect(self.place, self.store).list(""))
        )
        return tuple(file for file in known if self._takes(file.path))

    def _takes(self, path: str) -> bool:
        return (
            path != PROMISE
            and not hidden_part(path)
            and (_matches(path, self.include) if self.include else path.lower().endswith(self.endings))
            and not _matches(path, self.exclude)
        )


def _chosen(query: Files) -> _Chosen:
    endings = tuple(f"{ending}{packed}" for ending in ENDINGS[query.format] for packed in ("", *PACKED))
    has_splits = query.format in (*DELIMITERS, "jsonl", "parquet") and not on_web(query.place)
    return _Chosen(query.place, endings, query.include, query.exclude, query.store, query.paths, has_splits)


def _matches(path: str, patterns: Sequence[str]) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in patterns)


def _digest(files: Sequence[File]) -> str:
    return hashlib.sha256(canonical([[file.path, file.bytes, file.version] for file in files])).hexdigest()


@lru_cache(maxsize=4)
def _listed(chosen: _Chosen, listed: str, web: Web | None) -> tuple[File, ...]:
    """Return the files that a query was resolved for; SourceBusy if there are others now."""
    files = chosen.files(web)
    if _digest(files) != listed:
        message = f"{chosen.place} has changed since it was listed; run the same command again when it rests"
        raise SourceBusy(message)
    return files


@lru_cache(maxsize=4)
def _by_path(chosen: _Chosen, listed: str, web: Web | None) -> Mapping[str, File]:
    return {file.path: file for file in _listed(chosen, listed, web)}


SOURCE = Files
