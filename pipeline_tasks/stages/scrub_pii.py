"""Redact, pseudonymize or drop e-mail addresses, phone numbers and IP addresses."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Count
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT, REDACTION
from pipeline_tasks.stage import VARIABLE, Batches, Engine, Layer, Secret, Shards, Stage, reject, replace_column
from pipeline_tasks.text.pii.candidates import KINDS, PLACEHOLDERS, Limits, Span

if TYPE_CHECKING:  # it loads numba
    from pipeline_tasks.text.pii.scrubbing import Scrubbed

pc: Any = pyarrow.compute

PII = "scrub_pii:pii"
COUNTS = tuple(f"pii_{kind}" for kind in KINDS)
REDACTIONS = pa.field("redactions", pa.list_(REDACTION))
KEY_VARIABLE = "REFINERY_PII_KEY"
_SPANS_SHOWN = 50
_HOST = r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(?P<host>[^/?#:]*)"


@dataclass(frozen=True, slots=True)
class Params:
    """What to look for and what to do about it.

    `redact` writes `<EMAIL>`, `<PHONE>`, `<IP>`. `pseudonymize` writes the same token for the same value
    wherever it occurs, from a keyed BLAKE2 and never from a counter, so partitions agree. `drop` rejects
    documents. A document with more than `max_spans` findings is rejected under any action
    (Dolma: more than five); 0 means never. `regions` are the countries whose national phone formats
    count in every document; with `document_regions` those of its language and of its host's domain do, too.
    Numbers with `+` count everywhere. `public_ips` leaves private addresses alone (as datatrove).
    `key` is a secret that only the environment gives: `REFINERY_PII_KEY`.
    """

    action: Literal["redact", "pseudonymize", "drop"] = "redact"
    key: Secret = field(default=Secret(), metadata={VARIABLE: KEY_VARIABLE})
    regions: tuple[str, ...] = ("US",)
    document_regions: bool = True
    public_ips: bool = True
    max_spans: Count = 0


def scrub(documents: Batches, *, params: Params) -> Batches:
    """Replace findings in `text`, `title` and `url`, append counts and redactions; reject what may not pass."""
    from pipeline_tasks.text.pii.suspects import suspects

    for batch in documents:
        suspect = suspects(batch.column("text"))
        rows = _scrub_rows(batch, "text", suspect, params)
        written = _write(_scrub_names(batch, params), suspect, rows)
        yield _reject(written, suspect, [row.spans for row in rows], params)


def _scrub_rows(batch: pa.RecordBatch, column: str, suspect: pa.Array, params: Params) -> "list[Scrubbed]":
    """Return the scrubbed texts of the suspect rows of a column."""
    from pipeline_tasks.text.pii.scrubbing import scrub_text

    texts = batch.column(column).filter(suspect).cast(pa.large_binary())
    limits = _limits_of(batch.filter(suspect), params)
    token = partial(_token, params=params)
    return [scrub_text(text.as_py(), limit, token) for text, limit in zip(texts, limits, strict=True)]


def _limits_of(batch: pa.RecordBatch, params: Params) -> Iterator[Limits]:
    """Yield the limits of each document: the regions are those of its language and host."""
    from pipeline_tasks.text.pii.regions import regions_of

    keeps = params.action == "pseudonymize"
    nulls = pa.nulls(batch.num_rows, pa.string())
    known = params.document_regions
    languages = batch.column("language") if known and "language" in batch.schema.names else nulls
    urls = batch.column("url") if known and "url" in batch.schema.names else nulls
    hosts = pc.struct_field(pc.extract_regex(urls, _HOST), "host")
    for language, host in zip(languages.to_pylist(), hosts.to_pylist(), strict=True):
        yield Limits(regions_of(language or "", host or "", params.regions), params.public_ips, keeps)


def _scrub_names(batch: pa.RecordBatch, params: Params) -> pa.RecordBatch:
    """Scrub what is published beside the text: the title, and the e-mail addresses in the URL."""
    from pipeline_tasks.text.pii.suspects import suspects
    from pipeline_tasks.text.pii.web_addresses import scrub_urls

    if "title" in batch.schema.names:
        titles = batch.column("title")
        suspect = suspects(titles)
        scrubbed = pa.array([row.text for row in _scrub_rows(batch, "title", suspect, params)], pa.binary())
        batch = replace_column(batch, "title", pc.replace_with_mask(titles, suspect, scrubbed.cast(titles.type)))
    if "url" in batch.schema.names:
        batch = replace_column(batch, "url", scrub_urls(batch.column("url")))
    return batch


def _token(span: Span, params: Params) -> bytes:
    """Return the token that replaces a finding: a placeholder, or a pseudonym in a range that nobody owns.

    Mail goes to example.com (RFC 2606), phones to 555-01xx (reserved for fiction), IPv4 to 198.18.0.0/15
    (RFC 2544, never routed, larger than the documentation ranges), IPv6 to 2001:db8::/32 (RFC 3849).
    """
    if params.action != "pseudonymize":
        return PLACEHOLDERS[span.kind]
    key = hashlib.blake2b(params.key.value.encode()).digest()
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


def _write(batch: pa.RecordBatch, suspect: pa.Array, rows: "Sequence[Scrubbed]") -> pa.RecordBatch:
    """Write scrubbed texts, their lengths, the counts and the redactions to the rows that are suspect."""
    texts: Any = pa.array([row.text for row in rows], pa.large_binary()).cast(pa.large_string())
    batch = replace_column(batch, "text", pc.replace_with_mask(batch.column("text"), suspect, texts))
    lengths = pc.cast(pc.utf8_length(texts), pa.int64())
    batch = replace_column(batch, "chars", pc.replace_with_mask(batch.column("chars"), suspect, lengths))
    zeros = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
    for kind, name in zip(KINDS, COUNTS, strict=True):
        counts = pa.array([sum(span.kind == kind for span in row.spans) for row in rows], pa.int32())
        batch = replace_column(batch, name, pc.replace_with_mask(zeros, suspect, counts))
    return replace_column(batch, REDACTIONS.name, _redactions(suspect, rows))


def _redactions(suspect: pa.Array, rows: "Sequence[Scrubbed]") -> pa.Array:
    """Return the redactions of every row as `REDACTIONS`: none of those that are not suspect."""
    of_suspects = iter(rows)
    lists = [
        [redaction._asdict() for redaction in next(of_suspects).redactions] if is_suspect else []
        for is_suspect in suspect.to_pylist()
    ]
    return pa.array(lists, REDACTIONS.type)


def _reject(
    batch: pa.RecordBatch, suspect: pa.Array, spans: Sequence[Sequence[Span]], params: Params
) -> pa.RecordBatch:
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


def _evidence(spans: Sequence[Span], limit: int) -> str:
    """Return counts and byte spans of the original text, never a value: evidence is read by people."""
    counts = {name: sum(f"pii_{span.kind}" == name for span in spans) for name in COUNTS}
    shown = [[span.kind, span.start, span.end] for span in spans[:_SPANS_SHOWN]]
    return json.dumps({**counts, "limit": limit, "spans": shown}, sort_keys=True, separators=(",", ":"))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Scrub every shard by itself.

    Raises RecipeError when pseudonyms are asked for without a key, or for an unknown action or region.
    """
    import phonenumbers

    if params.action not in ("redact", "pseudonymize", "drop"):
        message = f"scrub_pii.action is {params.action!r}; use redact, pseudonymize or drop"
        raise RecipeError(message)
    if params.action == "pseudonymize" and not params.key.value:
        message = f"scrub_pii.action is pseudonymize, which needs a secret key; set {KEY_VARIABLE}"
        raise RecipeError(message)
    unknown = sorted(set(params.regions) - phonenumbers.SUPPORTED_REGIONS)
    if unknown:
        message = f"scrub_pii.regions has {', '.join(unknown)}; use two-letter countries of ISO 3166, such as US"
        raise RecipeError(message)
    layer = Layer(stores=(*COUNTS, REDACTIONS.name), changes=("url", "text", "title", "chars"))
    return on.map(partial(scrub, params=params), shards, layer=layer)


STAGE = Stage(
    name="scrub_pii",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, *(pa.field(name, pa.int32()) for name in COUNTS), REDACTIONS]),
    version=3,
    splits=True,
    secret=lambda params: "key" if params.action == "pseudonymize" else "",
    profiled=(*COUNTS, "language"),
    reasons=(PII,),
    title="Remove personal data",
)
