"""Redact, pseudonymize or drop e-mail addresses, phone numbers and IP addresses."""

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, Shards, Stage, reject, replace_column
from pipeline_tasks.text.pii import finders

PII = "scrub_pii:pii"
COUNTS = tuple(f"pii_{kind}" for kind in finders.KINDS)
_SPANS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Params:
    """What to look for and what to do about it.

    `redact` writes `<EMAIL>`, `<PHONE>`, `<IP>`. `pseudonymize` writes the same token for the same value
    wherever it occurs, from a keyed BLAKE2 and never from a counter, so partitions agree. `drop` sets
    documents aside. A document with more than `max_spans` findings is set aside under any action
    (Dolma: more than five); 0 means never. `regions` are the countries whose national phone formats
    count; numbers with `+` count everywhere. `public_ips` leaves private addresses alone (as datatrove).
    """

    action: Literal["redact", "pseudonymize", "drop"] = "redact"
    key: str = ""
    regions: tuple[str, ...] = ("US",)
    public_ips: bool = True
    max_spans: int = 0


def scrub(docs: Batches, *, params: Params) -> Batches:
    """Replace findings in `text`, update `chars`, append one count per kind; set aside what may not pass."""
    limits = finders.Limits(tuple(params.regions), params.public_ips, keep_pseudonyms=params.action == "pseudonymize")
    pattern = finders.prefilter(limits)
    for batch in docs:
        text = batch.column("text")
        matches: Any = pc.match_substring_regex(text, pattern)
        suspect = matches.fill_null(fill_value=False)
        cleaned: list[bytes | None] = []
        spans: list[list[finders.Span]] = []
        for value in text.filter(suspect).cast(pa.large_binary()):
            clean, found = _clean(value.as_py(), limits, params)
            cleaned.append(clean)
            spans.append(found)
        yield _judge(_write(batch, suspect, cleaned, spans), suspect, spans, params)


def _clean(text: bytes, limits: finders.Limits, params: Params) -> tuple[bytes, list[finders.Span]]:
    """Return the scrubbed text and the findings of its first pass; later passes mend what replacing uncovered."""
    first = spans = finders.find(text, limits)
    while spans:
        text = finders.replace(text, spans, partial(_token, params=params))
        spans = finders.find(text, limits)
    return text, first


def _token(span: finders.Span, params: Params) -> bytes:
    """Return what stands in for a finding: a placeholder, or a pseudonym in a range that nobody owns.

    Mail goes to example.com (RFC 2606), phones to 555-01xx (reserved for fiction), IPv4 to 198.18.0.0/15
    (RFC 2544, never routed, larger than the documentation ranges), IPv6 to 2001:db8::/32 (RFC 3849).
    """
    if params.action != "pseudonymize":
        return finders.PLACEHOLDERS[span.kind]
    key = hashlib.blake2b(params.key.encode()).digest()
    digest = hashlib.blake2b(span.value.encode(), digest_size=12, key=key, person=span.kind.encode())
    number = int.from_bytes(digest.digest(), "big")
    if span.kind == "email":
        return f"user_{digest.hexdigest()[:12]}@example.com".encode()
    if span.kind == "phone":
        return f"+1-{200 + number % 800}-555-01{number // 800 % 100:02d}".encode()
    if ":" in span.value:
        hexes = digest.hexdigest()
        return ("2001:db8:" + ":".join(hexes[at : at + 4] for at in range(0, 24, 4))).encode()
    return f"198.{18 + number % 2}.{number // 2 % 256}.{number // 512 % 256}".encode()


def _write(
    batch: pa.RecordBatch, suspect: pa.Array, cleaned: list[bytes | None], spans: list[list[finders.Span]]
) -> pa.RecordBatch:
    """Put scrubbed texts, their lengths and the counts in place."""
    texts: Any = pa.array(cleaned, pa.large_binary()).cast(pa.large_string())
    batch = replace_column(batch, "text", pc.replace_with_mask(batch.column("text"), suspect, texts))
    lengths = pc.cast(pc.utf8_length(texts), pa.int64())
    batch = replace_column(batch, "chars", pc.replace_with_mask(batch.column("chars"), suspect, lengths))
    zeros = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
    for kind, name in zip(finders.KINDS, COUNTS, strict=True):
        counts = pa.array([sum(span.kind == kind for span in found) for found in spans], pa.int32())
        batch = replace_column(batch, name, pc.replace_with_mask(zeros, suspect, counts))
    return batch


def _judge(batch: pa.RecordBatch, suspect: pa.Array, spans: list[list[finders.Span]], params: Params) -> pa.RecordBatch:
    """Set aside documents with findings (`drop`) or with too many of them (`max_spans`)."""
    limit = 0 if params.action == "drop" else params.max_spans or None
    reasons: list[str | None] = []
    evidence: list[str | None] = []
    found_by_row = iter(spans)
    for is_suspect in suspect.to_pylist():
        found = next(found_by_row) if is_suspect else []
        out = limit is not None and len(found) > limit
        reasons.append(PII if out else None)
        evidence.append(_evidence(found, limit or 0) if out else None)
    return reject(batch, pa.array(reasons, pa.string()), pa.array(evidence, pa.string()))


def _evidence(found: list[finders.Span], limit: int) -> str:
    """Return counts and byte spans of the original text, never a value: evidence is read by people."""
    facts = {name: sum(f"pii_{span.kind}" == name for span in found) for name in COUNTS}
    shown = [[span.kind, span.start, span.end] for span in found[:_SPANS_SHOWN]]
    return json.dumps({**facts, "limit": limit, "spans": shown}, sort_keys=True, separators=(",", ":"))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Scrub every shard by itself.

    Raises RecipeError when the recipe asks for pseudonyms without a key, or for an unknown action.
    """
    if params.action not in ("redact", "pseudonymize", "drop"):
        message = f"scrub_pii.action is {params.action!r}; use redact, pseudonymize or drop"
        raise RecipeError(message)
    if params.action == "pseudonymize" and not params.key:
        message = "scrub_pii.action is pseudonymize but scrub_pii.key is empty; set a secret key"
        raise RecipeError(message)
    return on.map(partial(scrub, params=params), shards)


STAGE = Stage(
    name="scrub_pii",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, *(pa.field(name, pa.int32()) for name in COUNTS)]),
    version=1,
    splits=True,
    profiled=COUNTS,
    reasons=(PII,),
    title="personal data out",
)
