"""Redact, pseudonymize or drop e-mail addresses, phone numbers and IP addresses."""

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import Count
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, Shards, Stage, reject, replace_column
from pipeline_tasks.text.pii.candidates import KINDS, PLACEHOLDERS, Limits, Span
from pipeline_tasks.text.pii.findings import find_pii, prefilter, replace_spans

PII = "scrub_pii:pii"
COUNTS = tuple(f"pii_{kind}" for kind in KINDS)
_SPANS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Params:
    """What to look for and what to do about it.

    `redact` writes `<EMAIL>`, `<PHONE>`, `<IP>`. `pseudonymize` writes the same token for the same value
    wherever it occurs, from a keyed BLAKE2 and never from a counter, so partitions agree. `drop` rejects
    documents. A document with more than `max_spans` findings is rejected under any action
    (Dolma: more than five); 0 means never. `regions` are the countries whose national phone formats
    count; numbers with `+` count everywhere. `public_ips` leaves private addresses alone (as datatrove).
    """

    action: Literal["redact", "pseudonymize", "drop"] = "redact"
    key: str = ""
    regions: tuple[str, ...] = ("US",)
    public_ips: bool = True
    max_spans: Count = 0


def scrub(documents: Batches, *, params: Params) -> Batches:
    """Replace findings in `text`, update `chars`, append one count per kind; reject what may not pass."""
    limits = Limits(tuple(params.regions), params.public_ips, keep_pseudonyms=params.action == "pseudonymize")
    pattern = prefilter(limits)
    for batch in documents:
        text = batch.column("text")
        matches: Any = pc.match_substring_regex(text, pattern)
        suspect = matches.fill_null(fill_value=False)
        suspects = text.filter(suspect).cast(pa.large_binary())
        pairs = [_clean(value.as_py(), limits, params) for value in suspects]
        spans = [spans for _, spans in pairs]
        yield _reject(_write(batch, suspect, [clean for clean, _ in pairs], spans), suspect, spans, params)


def _clean(text: bytes, limits: Limits, params: Params) -> tuple[bytes, list[Span]]:
    """Return the scrubbed text and the findings of its first pass; later passes scrub what replacing uncovered."""
    first = spans = find_pii(text, limits)
    while spans:
        text = replace_spans(text, spans, partial(_token, params=params))
        spans = find_pii(text, limits)
    return text, first


def _token(span: Span, params: Params) -> bytes:
    """Return the token that replaces a finding: a placeholder, or a pseudonym in a range that nobody owns.

    Mail goes to example.com (RFC 2606), phones to 555-01xx (reserved for fiction), IPv4 to 198.18.0.0/15
    (RFC 2544, never routed, larger than the documentation ranges), IPv6 to 2001:db8::/32 (RFC 3849).
    """
    if params.action != "pseudonymize":
        return PLACEHOLDERS[span.kind]
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


def _write(batch: pa.RecordBatch, suspect: pa.Array, cleaned: list[bytes], spans: list[list[Span]]) -> pa.RecordBatch:
    """Write scrubbed texts, their lengths and the counts to the rows that are suspect."""
    texts: Any = pa.array(cleaned, pa.large_binary()).cast(pa.large_string())
    batch = replace_column(batch, "text", pc.replace_with_mask(batch.column("text"), suspect, texts))
    lengths = pc.cast(pc.utf8_length(texts), pa.int64())
    batch = replace_column(batch, "chars", pc.replace_with_mask(batch.column("chars"), suspect, lengths))
    zeros = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
    for kind, name in zip(KINDS, COUNTS, strict=True):
        counts = pa.array([sum(span.kind == kind for span in row) for row in spans], pa.int32())
        batch = replace_column(batch, name, pc.replace_with_mask(zeros, suspect, counts))
    return batch


def _reject(batch: pa.RecordBatch, suspect: pa.Array, spans: list[list[Span]], params: Params) -> pa.RecordBatch:
    """Reject documents with findings (`drop`) or with too many of them (`max_spans`)."""
    limit = 0 if params.action == "drop" else params.max_spans or None
    reasons: list[str | None] = []
    evidence: list[str | None] = []
    spans_of_suspects = iter(spans)
    for is_suspect in suspect.to_pylist():
        row = next(spans_of_suspects) if is_suspect else []
        is_rejected = limit is not None and len(row) > limit
        reasons.append(PII if is_rejected else None)
        evidence.append(_evidence(row, limit or 0) if is_rejected else None)
    return reject(batch, pa.array(reasons, pa.string()), pa.array(evidence, pa.string()))


def _evidence(spans: list[Span], limit: int) -> str:
    """Return counts and byte spans of the original text, never a value: evidence is read by people."""
    counts = {name: sum(f"pii_{span.kind}" == name for span in spans) for name in COUNTS}
    shown = [[span.kind, span.start, span.end] for span in spans[:_SPANS_SHOWN]]
    return json.dumps({**counts, "limit": limit, "spans": shown}, sort_keys=True, separators=(",", ":"))


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
    title="Remove personal data",
)
