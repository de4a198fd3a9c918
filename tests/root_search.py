"""Searches all that is stored below a folder for texts: it shares no code with what erases them.

Each file is looked at as it is, and with everything in it unpacked that can be: frames of gzip and zstd wherever they
begin, in columns also those whose dictionary is the text itself, pages of Parquet with their dictionaries and
statistics, and all
values of its columns. A text is found by three of its words in a row, in any escaping, or by nine of its tokens in
a row, in any width.
"""

import html
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from tokenizers import Tokenizer

ZSTD, GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08"
TOGETHER, TOKENS = 3, 5
WIDTHS = ("<u2", "<i4", "<i8", ">u2", ">i4", ">i8")


class Wanted:
    """Texts by name, as words and as tokens."""

    def __init__(self, texts: Mapping[str, str], tokenizer: Path) -> None:
        encoder = Tokenizer.from_file(str(tokenizer))
        self.texts = dict(texts)
        self.words: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.tokens: dict[bytes, str] = {}
        for name, text in texts.items():
            self.names |= {text: name} if " " not in text else {}
            for stretch in re.split(r"\S*[^\w\s]\S*", text):  # an address of e-mail may be in many texts
                self.words |= dict.fromkeys(_runs(_words(stretch)), name)
            ids = encoder.encode(text, add_special_tokens=False).ids
            for at in range(0, len(ids) - TOKENS + 1, TOKENS):
                for width in (width for width in WIDTHS if max(ids) <= np.iinfo(width).max):
                    self.tokens.setdefault(np.array(ids[at : at + TOKENS], width).tobytes(), name)

    def in_bytes(self, body: bytes) -> set[str]:
        """Return the names of the texts that bytes have."""
        found = {name for tokens, name in self.tokens.items() if tokens in body}
        for form in _forms(body):
            found |= {self.words[run] for run in _runs(_words(form)) if run in self.words}
            found |= {name for text, name in self.names.items() if text in form}
        return found


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _runs(words: Sequence[str]) -> Iterator[str]:
    return (" ".join(words[at : at + TOGETHER]) for at in range(len(words) - TOGETHER + 1))


def _forms(body: bytes) -> Iterator[str]:
    plain = body.decode("utf-8", "ignore")
    yield plain
    if "<" in plain or "&" in plain:
        yield html.unescape(re.sub("<[^<>]*>", " ", plain))
    if "\\" in plain:
        yield _unescaped(plain)


def _unescaped(text: str) -> str:
    spaced = re.sub(r"\\[nrt]", " ", text)
    return (
        re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), spaced).encode("utf-8", "replace").decode()
    )


def search(folder: Path, wanted: Wanted, skip: Sequence[str] = ()) -> dict[str, set[str]]:
    """Return the texts that each file below a folder has, for files that have any, by path."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not name.startswith(tuple(skip)):
            texts = {text for body in _bodies(path, wanted) for text in wanted.in_bytes(body)}
            if texts:
                found[name] = texts
    return found


def _bodies(path: Path, wanted: Wanted) -> Iterator[bytes]:
    """Yield a file, what is packed in it, and the values of its columns."""
    body = path.read_bytes()
    yield body
    yield from _unpacked(body)
    if body[:4] == b"PAR1":
        file = pq.ParquetFile(path)
        yield repr(file.metadata.to_dict()).encode()
        yield repr(file.schema_arrow.metadata).encode()
        for column in file.read().columns:
            yield from _values(column.combine_chunks(), wanted)


def _unpacked(body: bytes, dictionaries: Sequence[str] = ()) -> Iterator[bytes]:
    for match in re.finditer(re.escape(ZSTD), body):
        for dictionary in (None, *dictionaries):
            known = dictionary and zstandard.ZstdCompressionDict(dictionary.encode(), zstandard.DICT_TYPE_RAWCONTENT)
            unpacker = zstandard.ZstdDecompressor(**({"dict_data": known} if known else {})).decompressobj()
            try:
                yield unpacker.decompress(body[match.start() :])
            except zstandard.ZstdError:
                continue
    for match in re.finditer(re.escape(GZIP), body):
        try:
            yield zlib.decompressobj(31).decompress(body[match.start() :])
        except zlib.error:
            continue


def _values(column: pa.Array, wanted: Wanted) -> Iterator[bytes]:
    kind = column.type
    if pa.types.is_struct(kind):
        for at in range(kind.num_fields):
            yield from _values(pa.compute.struct_field(column, [at]), wanted)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _values(column.flatten(), wanted)
    elif pa.types.is_integer(kind):
        yield column.drop_null().to_numpy(zero_copy_only=False).astype("<i8").tobytes()
    else:
        for value in column.drop_null().to_pylist():
            body = value if isinstance(value, bytes) else str(value).encode()
            yield body
            yield from _unpacked(body, [*wanted.texts.values()])
