"""Seals committed JSON, so that each reader sees a changed byte, and names committed objects by path and digest."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any

from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.errors import ContractError, DigestMismatch

SEAL = "sha256"
"""Field of a sealed object: the SHA-256 of the canonical form of its other fields."""

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
    if is_dataclass(kind):
        values = [(name, getattr(value, name), omitted) for name, omitted in _written_fields(kind)]
        return {name: _plain(item) for name, item, omitted in values if omitted is MISSING or item != omitted}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


@cache
def _written_fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """Return the names of the fields that are written, each with the value that is left out, `MISSING` for none."""
    return tuple((declared.name, declared.metadata.get(OMITTED, MISSING)) for declared in fields(kind) if declared.repr)


def digest_of(value: object, length: int = 24) -> str:
    """Return the first `length` hex digits of the SHA-256 of `value`'s canonical form."""
    return sha256(canonical(value))[:length]


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
    """Return an object (a mapping or dataclass) as it is committed: canonical JSON with the digest of its fields."""
    plain: Any = _plain(value)
    return _sealed({key: item for key, item in plain.items() if key != SEAL})


def _sealed(plain: Mapping[str, Any]) -> bytes:
    return _dumped({**plain, SEAL: sha256(_dumped(plain))}) + b"\n"


def parse(body: bytes, path: str, way_out: str) -> dict[str, Any]:
    """Return the fields of a JSON object whose seal is not checked yet; ContractError names `path` and `way_out`."""
    try:
        raw = json.loads(body)
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
    promised = raw.pop(SEAL, None)
    if promised is None:
        message = f"{path} has no seal (field {SEAL}); an earlier release wrote it, or it was changed; {way_out}"
        raise ContractError(message)
    try:
        whole = _sealed(raw) == body
    except (ValueError, RecursionError):  # what no canonical form has: lone surrogates, deep nesting
        whole = False
    if not whole:
        message = f"{path} was changed after it was written: its content and its seal differ; {way_out}"
        raise DigestMismatch(message)
    return raw


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
