"""Seals committed JSON, so that each reader sees a changed byte, and names committed objects by path and digest."""

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any

from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.errors import ContractError, DigestMismatch

SEAL = "sha256"
"""Field of a sealed object: the SHA-256 of the canonical form of its other fields."""

_DIGITS = 64
_DIGEST = re.compile("[0-9a-f]{64}")
_SEALED = len(f'"{SEAL}":""') + _DIGITS
"""Bytes of the seal."""

_REFERENCE = re.compile("(.+?)(?:@sha256:([0-9a-f]{64}))?", re.DOTALL)


def canonical(value: object) -> bytes:
    """Return `value` as JSON bytes that are equal for equal values: sorted keys, no spaces, no clock.

    A field that `repr` does not show, such as the value of a `Secret`, is left out, and so is one that has the value of
    its metadata `OMITTED`.
    """
    return _dumped(_plain(value))


def _dumped(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _plain(value: object) -> object:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if is_dataclass(kind) or isinstance(value, Mapping):
        return {name: _plain(item) for name, item in _members(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _members(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a dataclass that are written, or the entries of a mapping."""
    if isinstance(value, Mapping):
        yield from ((str(key), item) for key, item in value.items())
    else:
        kind: Any = type(value)
        for name, omitted in _written_fields(kind):
            item = getattr(value, name)
            if omitted is MISSING or item != omitted:
                yield name, item


@cache
def _written_fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """Return the names of the fields that are written, each with the value that is left out, `MISSING` for none."""
    return tuple((declared.name, declared.metadata.get(OMITTED, MISSING)) for declared in fields(kind) if declared.repr)


def digest_of(value: object, length: int = 24) -> str:
    """Return the first `length` hex digits of the SHA-256 of `value`'s canonical form."""
    return sha256(canonical(value))[:length]


def digest_of_all(values: Iterable[object], length: int = 24) -> str:
    """Return `digest_of` the list of some values, one of which at a time is in memory."""
    hashed, between = hashlib.sha256(b"["), b""
    for value in values:
        hashed.update(between + canonical(value))
        between = b","
    hashed.update(b"]")
    return hashed.hexdigest()[:length]


def visible(names: Iterable[str]) -> list[str]:
    """Return the names of a folder's files that belong to it, sorted: hidden files and folders do not."""
    return sorted(name for name in names if not any(part.startswith(".") for part in name.split("/")))


def digest_of_folder(digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of a folder, by the names of its files and their digests."""
    return sha256("".join(f"{name} {digests[name]}\n" for name in sorted(digests)).encode())


def sha256(body: bytes) -> str:
    """Return the SHA-256 of bytes as hex digits."""
    return hashlib.sha256(body).hexdigest()


# --- Sealed objects -----------------------------------------------------------------------------------------------


def seal(value: object) -> bytes:
    """Return an object (a mapping or dataclass) as it is committed: canonical JSON with the digest of its fields.

    It is written piece by piece, first to be hashed: a manifest of 100,000 shards is in memory once as bytes, and never
    as plain objects.
    """
    members = {name: item for name, item in _members(value) if name != SEAL}
    hashed, size = hashlib.sha256(), 0
    for piece in _object(members):
        hashed.update(piece)
        size += len(piece)
    size += _SEALED + len(b",") * bool(members) + len(b"\n")
    sink = io.BytesIO(bytes(size))  # a buffer that grows is copied
    for piece in _object({**members, SEAL: hashed.hexdigest()}):
        sink.write(piece)
    sink.write(b"\n")
    return sink.getvalue()


def _object(members: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the canonical form of an object with these members."""
    for rank, name in enumerate(sorted(members)):
        yield (b"," if rank else b"{") + _dumped(name) + b":"
        yield from _pieces(members[name])
    yield b"}" if members else b"{}"


_PIECE = 256
"""Entries of a list that are written at once."""


def _pieces(value: object) -> Iterator[bytes]:
    """Yield the canonical form of a value, a long list entry by entry, also one that a mapping has."""
    if isinstance(value, (list, tuple)) and len(value) > _PIECE:
        for at in range(0, len(value), _PIECE):
            yield (b"," if at else b"[") + canonical(value[at : at + _PIECE])[1:-1]
        yield b"]"
    elif isinstance(value, Mapping) and any(isinstance(item, (list, tuple)) for item in value.values()):
        yield from _object(dict(_members(value)))
    else:
        yield canonical(value)


def _digest_without_seal(body: bytes | memoryview, begin: int) -> str:
    """Return the SHA-256 of a sealed object without its last byte and the seal, a field that begins at a place."""
    stop = begin + _SEALED
    if body[begin - 1 : begin] == b",":
        begin -= 1
    elif body[stop : stop + 1] == b",":
        stop += 1
    whole = memoryview(body)
    hashed = hashlib.sha256(whole[:begin])
    hashed.update(whole[stop:-1])
    return hashed.hexdigest()


def parse(
    body: bytes, path: str, way_out: str, read_object: Callable[[dict[str, Any]], Any] | None = None
) -> dict[str, Any]:
    """Return the fields of a JSON object whose seal is not checked yet; ContractError names `path` and `way_out`.

    `read_object` returns what each object in it becomes, as `json.loads` has it.
    """
    try:
        raw = json.loads(body, object_hook=read_object)
    except (ValueError, RecursionError) as error:
        message = f"{path} is not JSON ({_short(error)}): it was cut short or damaged; {way_out}"
        raise ContractError(message) from error
    if not isinstance(raw, dict):
        message = f"{path} is not a JSON object; {way_out}"
        raise ContractError(message)
    return raw


def _short(error: Exception) -> str:
    return str(error).rstrip(".")[:200]


def unseal(body: bytes, path: str, way_out: str) -> dict[str, Any]:
    """Return the fields of a sealed object.

    ContractError if the bytes are no JSON object, DigestMismatch if any of them was changed; `path` names the object.
    """
    raw = parse(body, path, way_out)
    require_seal(raw, body, path, way_out)
    return raw


def require_seal(raw: dict[str, Any], body: bytes, path: str, way_out: str) -> None:
    """Take the seal from the fields that `parse` returned; raises as `unseal` does."""
    promised = raw.pop(SEAL, None)
    if promised is None:
        message = f"{path} has no seal (field {SEAL}); an earlier release wrote it, or it was changed; {way_out}"
        raise ContractError(message)
    if not _is_whole(body, promised):
        message = f"{path} was changed after it was written: its content and its seal differ; {way_out}"
        raise DigestMismatch(message)


def _is_whole(body: bytes, promised: object) -> bool:
    """Return whether the bytes of an object have the digest that its seal promises.

    They are hashed as they are, and not written again: a seal is the digest of the bytes that are stored around it.
    """
    if not isinstance(promised, str) or not _DIGEST.fullmatch(promised):
        return False
    seal_field = f'"{SEAL}":"{promised}"'.encode()
    begin = body.find(seal_field)
    # What has its own digest twice does not exist; what ends otherwise was cut short.
    is_once = begin > 0 and body.find(seal_field, begin + 1) < 0
    return is_once and body.endswith(b"}\n") and _digest_without_seal(body, begin) == promised


# --- References ---------------------------------------------------------------------------------------------------


def reference(path: str, digest: str) -> str:
    """Return the reference of a committed object, as container images have it: `path@sha256:digest`."""
    return f"{path}@sha256:{digest}"


def split_reference(referred: str) -> tuple[str, str]:
    """Return the path and the digest of a reference; a plain path has the digest ""."""
    path, digest = _REFERENCE.fullmatch(referred).groups("")  # type: ignore[union-attr]  # matches all but ""
    return path, digest


def path_of(referred: str) -> str:
    """Return the path of a reference."""
    return split_reference(referred)[0] if referred else ""


def require_digest(body: bytes, digest: str, path: str, way_out: str) -> None:
    """Raise DigestMismatch unless bytes have the digest that a reference promises ("": it promises nothing)."""
    actual = sha256(body)
    if digest not in ("", actual):
        message = (
            f"{path}: SHA-256 is {actual}, and what names it promises {digest}; it was changed after it was named; "
            f"{way_out}"
        )
        raise DigestMismatch(message)
