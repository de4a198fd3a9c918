"""Redact, pseudonymize or drop personal data: addresses, numbers of persons, accounts and cards, keys, names."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import OMITTED, Count
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Canceled, Requests, Spans, UnitCost
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import DOCUMENT, REDACTION
from pipeline_tasks.scorers.entities import EntityFinder
from pipeline_tasks.stage import (
    NO_FILE,
    VARIABLE,
    Batches,
    Engine,
    FilePath,
    Idle,
    Layer,
    Secret,
    Shards,
    Stage,
    always,
    reject,
    replace_column,
)
from pipeline_tasks.stages.scrub_pii.names import FOUND, Named, errors_of, find_names, named_in
from pipeline_tasks.text.pii.candidates import Limits, Span
from pipeline_tasks.text.pii.kinds import BY_MODEL, COUNTS, KINDS, PLACEHOLDERS, TABLE, Action, Kind

if TYPE_CHECKING:  # it loads numba
    from pipeline_tasks.text.pii.scrubbing import Scrubbed

pc: Any = pyarrow.compute

PII = "scrub_pii:pii"
FAILED = "error:scrub_pii"
REDACTIONS = pa.field("redactions", pa.list_(REDACTION))
MISSED = pa.field("missed_canaries", pa.string())
"""Kinds of which the task that wrote a row missed a canary, with commas between; null where it missed none."""

KEY_VARIABLE = "REFINERY_PII_KEY"
_KEY_NAME = re.compile(r"[a-z0-9]{0,16}")
_SPANS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Params:
    """What to look for and what to do about it.

    `redact` writes `<EMAIL>`, `<PHONE>`, `<CARD>` and so on. `pseudonymize` writes the same token for the same value
    wherever it occurs, from a keyed BLAKE2 and never from a counter, so partitions agree. `drop` rejects
    documents. `action` is that of every kind that is looked for without a word: `email`, `phone`, `ip`, `card`, `iban`,
    `national_id` and `credential`. `kinds` gives kinds an action of their own, such as `{mac: redact, card: drop}`, and
    `keep` looks for none: `crypto`, `mac`, `gps` and `birth_date` are kept unless they are named.
    `name` and `address` need a `model`: the folder of a spaCy pipeline (`meta.json`, `config.cfg`;
    `hf://owner/name@commit` for one of the hub) that reads texts of its language, or of all if it is of several
    (`xx`). `labels` says which of its labels are which kind, such as `{PERSON: name, ADDRESS: address}`; others are
    left alone. It needs the extra `entities`. A document that it fails on is quarantined.
    A document with more than `max_spans` findings is rejected under any action
    (Dolma: more than five); 0 means never. `regions` are the countries whose national formats of phones and persons'
    numbers count in every document; with `document_regions` those of its language and of its host's domain do, too.
    Numbers with `+` count everywhere. `public_ips` leaves private addresses alone (as datatrove).
    `public_mail` leaves addresses alone that are published to be written to: `lists` those on hosts of mailing lists
    (`@lists.debian.org`, `@googlegroups.com`), `roles` those of RFC 2142 and alike (`security@`, `bugs@`, `press@`).
    `key` is a secret that only the environment gives: `REFINERY_PII_KEY`. `key_name`, such as `2026`, stands in the
    manifest and in pseudonyms that have room for it, so that those of two keys are told apart.
    """

    action: Literal["redact", "pseudonymize", "drop"] = "redact"
    kinds: Mapping[str, Action] = field(default_factory=dict, metadata={OMITTED: {}})
    key: Secret = field(default=Secret(), metadata={VARIABLE: KEY_VARIABLE})
    key_name: str = field(default="", metadata={OMITTED: ""})
    regions: tuple[str, ...] = ("US",)
    document_regions: bool = True
    public_ips: bool = True
    public_mail: tuple[Literal["lists", "roles"], ...] = field(default=(), metadata={OMITTED: ()})
    max_spans: Count = 0
    model: FilePath = field(default=NO_FILE, metadata={OMITTED: NO_FILE})
    labels: Mapping[str, Named] = field(default_factory=dict, metadata={OMITTED: {}})

    def __post_init__(self) -> None:
        """Refuse kinds that are not in the table or lack a model, and names of keys that pseudonyms cannot have."""
        if unknown := sorted(set(self.kinds) - set(KINDS)):
            message = f"kinds has {', '.join(unknown)}; use {', '.join(KINDS)}"
            raise RecipeError(message)
        if not _KEY_NAME.fullmatch(self.key_name):
            message = f"key_name is {self.key_name!r}; use up to 16 of a-z and 0-9, such as 2026"
            raise RecipeError(message)
        if others := sorted(set(self.labels.values()) - BY_MODEL):
            message = f"labels has {', '.join(others)}; what a model finds is name or address"
            raise RecipeError(message)
        for kind in named_kinds(self):
            if not self.model:
                message = f"kinds has {kind}, which only a model finds; name a spaCy pipeline in `model`"
                raise RecipeError(message)
            if kind not in self.labels.values():
                message = f"kinds has {kind}, and no label of `model` is one; say which in labels, as {{PERSON: name}}"
                raise RecipeError(message)


def actions_of(params: Params) -> dict[Kind, Action]:
    """Return what is done about each kind that is looked for."""
    return _actions(params.action, params.kinds)


def recorded_actions(params: Mapping[str, Any]) -> dict[str, str]:
    """Return what is done about each kind that is looked for, by the params of a manifest."""
    return dict(_actions(params.get("action", "redact"), params.get("kinds", {})).items())


def _actions(action: Action, kinds: Mapping[str, Action]) -> dict[Kind, Action]:
    chosen = {kind: kinds.get(kind, action if TABLE[kind].by_default else "keep") for kind in KINDS}
    return {kind: action for kind, action in chosen.items() if action != "keep"}


def named_kinds(params: Params) -> tuple[Kind, ...]:
    """Return the kinds that are looked for by a model."""
    return tuple(kind for kind in actions_of(params) if kind in BY_MODEL)


def scrub(documents: Batches, *, params: Params) -> Batches:
    """Replace findings in `text`, `title` and `url`, append counts and redactions; reject what may not pass.

    Columns of `find_names` are used and left out.
    """
    from pipeline_tasks.text.pii.canaries import missed_canaries
    from pipeline_tasks.text.pii.suspects import suspects

    actions = actions_of(params)
    missed = ",".join(missed_canaries(frozenset(actions)))
    for batch in documents:
        found = {name: named_in(batch, name, chosen_labels(params)) for name in ("text", "title")}
        errors = errors_of(batch)
        bare = batch.drop_columns([FOUND + name for name in found if FOUND + name in batch.schema.names])
        suspect = pc.or_(suspects(bare.column("text"), frozenset(actions)), _any_found(found["text"], bare.num_rows))
        rows = _scrub_rows(bare, "text", suspect, found["text"], params)
        written = _write(_scrub_title_and_url(bare, found["title"], params), suspect, rows, actions)
        written = _without_unread_counts(written, found["text"])
        flag = pa.repeat(pa.scalar(missed or None, MISSED.type), bare.num_rows)
        judged = _judge(suspect, [row.spans for row in rows], params)
        yield reject(replace_column(written, MISSED.name, flag), *_failures_first(*judged, errors))


def chosen_labels(params: Params) -> dict[str, Kind]:
    """Return the labels of the model that are looked for, by the kind that each is."""
    wanted = named_kinds(params)
    return {label: kind for label, kind in params.labels.items() if kind in wanted}


Found = Sequence[Sequence[Span] | None] | None
"""What a model found in each row, None for one that it did not read; None without a model."""


def _any_found(found: Found, rows: int) -> pa.Array:
    return pa.array([bool(spans) for spans in found] if found else [False] * rows, pa.bool_())


def _without_unread_counts(batch: pa.RecordBatch, found: Found) -> pa.RecordBatch:
    """Return rows with null as the counts of names and addresses where the model did not read the text."""
    if found is None:
        return batch
    is_read = pa.array([spans is not None for spans in found], pa.bool_())
    for name in (f"pii_{kind}" for kind in BY_MODEL):
        counts = pc.if_else(is_read, batch.column(name), pa.scalar(None, pa.int32()))
        batch = replace_column(batch, name, counts)
    return batch


def _failures_first(reasons: pa.Array, evidence: pa.Array, errors: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return reasons and evidence with those of rows that the model failed on: they are quarantined."""
    failed = pc.is_valid(errors)
    return pc.if_else(failed, pa.scalar(FAILED), reasons), pc.if_else(failed, errors, evidence)


def _scrub_rows(
    batch: pa.RecordBatch, column: str, suspect: pa.Array, found: Found, params: Params
) -> "list[Scrubbed]":
    """Return the scrubbed texts of the suspect rows of a column."""
    from pipeline_tasks.text.pii.scrubbing import scrub_text

    texts = batch.column(column).filter(suspect).cast(pa.large_binary())
    limits = _limits_of(batch.filter(suspect), params)
    token = partial(_token, actions=actions_of(params), params=params)
    named = compress(found, suspect.to_pylist()) if found else repeat(None)
    rows = zip(texts, limits, named, strict=False)
    return [scrub_text(text.as_py(), limit, token, spans or ()) for text, limit, spans in rows]


def _limits_of(batch: pa.RecordBatch, params: Params) -> Iterator[Limits]:
    """Yield the limits of each document: the regions are those of its language and host."""
    from pipeline_tasks.text.pii.regions import regions_of
    from pipeline_tasks.text.urls.keys import hosts

    actions = actions_of(params)
    keeps = "pseudonymize" in actions.values()
    nulls = pa.nulls(batch.num_rows, pa.string())
    known = params.document_regions
    languages = batch.column("language") if known and "language" in batch.schema.names else nulls
    urls = batch.column("url") if known and "url" in batch.schema.names else nulls
    for language, host in zip(languages.to_pylist(), hosts(urls).to_pylist(), strict=True):
        regions = regions_of(language or "", host or "", params.regions)
        yield Limits(regions, params.public_ips, keeps, frozenset(actions), frozenset(params.public_mail))


def _scrub_title_and_url(batch: pa.RecordBatch, found: Found, params: Params) -> pa.RecordBatch:
    """Scrub what is published beside the text: the title, and the e-mail addresses in the URL unless they are kept."""
    from pipeline_tasks.text.pii.suspects import suspects
    from pipeline_tasks.text.pii.web_addresses import scrub_urls

    if "title" in batch.schema.names:
        titles = batch.column("title")
        suspect = pc.or_(suspects(titles, frozenset(actions_of(params))), _any_found(found, batch.num_rows))
        scrubbed = pa.array([row.text for row in _scrub_rows(batch, "title", suspect, found, params)], pa.binary())
        batch = replace_column(batch, "title", pc.replace_with_mask(titles, suspect, scrubbed.cast(titles.type)))
    if "url" in batch.schema.names and "email" in actions_of(params):
        batch = replace_column(
            batch, "url", scrub_urls(batch.column("url"), Limits(public_mail=frozenset(params.public_mail)))
        )
    return batch


def _token(span: Span, *, actions: Mapping[Kind, Action], params: Params) -> bytes:
    """Return the token that replaces a finding: a placeholder, or a pseudonym that is nobody's.

    Mail goes to example.com (RFC 2606), phones to 555-01xx (reserved for fiction), IPv4 to 198.18.0.0/15
    (RFC 2544, never routed, larger than the documentation ranges), IPv6 to 2001:db8::/32 (RFC 3849). Any other kind
    becomes its name and letters: digits might be found as a value again.
    """
    if actions[span.kind] != "pseudonymize":
        return PLACEHOLDERS[span.kind]
    key = hashlib.blake2b(params.key.value.encode()).digest()
    digest = hashlib.blake2b(span.value.encode(), digest_size=12, key=key, person=span.kind.encode())
    number = int.from_bytes(digest.digest(), "big")
    named = f"{params.key_name}." if params.key_name else ""
    if span.kind == "email":
        return f"user_{digest.hexdigest()[:12]}@{named}example.com".encode()
    if span.kind == "phone":
        return f"+1-{200 + number % 800}-555-01{number // 800 % 100:02d}".encode()
    if span.kind != "ip":
        return "_".join(filter(None, (span.kind, params.key_name, _letters(number)))).encode()
    if ":" in span.value:
        hexes = digest.hexdigest()
        return ("2001:db8:" + ":".join(hexes[at : at + 4] for at in range(0, 24, 4))).encode()
    return f"198.{18 + number % 2}.{number // 2 % 256}.{number // 512 % 256}".encode()


def _letters(number: int) -> str:
    """Return twelve letters from a to p for the last 48 bits of a number."""
    return "".join(chr(ord("a") + (number >> 4 * at & 15)) for at in range(12))


def _write(
    batch: pa.RecordBatch, suspect: pa.Array, rows: "Sequence[Scrubbed]", actions: Mapping[Kind, Action]
) -> pa.RecordBatch:
    """Write scrubbed texts, their lengths, the counts and the redactions to the rows that are suspect.

    The count of a kind that is not looked for is null.
    """
    texts: Any = pa.array([row.text for row in rows], pa.large_binary()).cast(pa.large_string())
    batch = replace_column(batch, "text", pc.replace_with_mask(batch.column("text"), suspect, texts))
    lengths = pc.cast(pc.utf8_length(texts), pa.int64())
    batch = replace_column(batch, "chars", pc.replace_with_mask(batch.column("chars"), suspect, lengths))
    zeros = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
    for kind, name in zip(KINDS, COUNTS, strict=True):
        if kind not in actions:
            batch = replace_column(batch, name, pa.nulls(batch.num_rows, pa.int32()))
            continue
        counts = pa.array([sum(span.kind == kind for span in row.spans) for row in rows], pa.int32())
        batch = replace_column(batch, name, pc.replace_with_mask(zeros, suspect, counts))
    return replace_column(batch, REDACTIONS.name, _redactions(suspect, rows, actions))


def _redactions(suspect: pa.Array, rows: "Sequence[Scrubbed]", actions: Mapping[Kind, Action]) -> pa.Array:
    """Return the redactions of every row as `REDACTIONS`: none of those that are not suspect."""
    of_suspects = iter(rows)
    lists = [
        [{**redaction._asdict(), "action": actions[redaction.kind]} for redaction in next(of_suspects).redactions]
        if is_suspect
        else []
        for is_suspect in suspect.to_pylist()
    ]
    return pa.array(lists, REDACTIONS.type)


def _judge(suspect: pa.Array, spans: Sequence[Sequence[Span]], params: Params) -> tuple[pa.Array, pa.Array]:
    """Return why documents are rejected, with evidence: a kind that is dropped, or too many findings (`max_spans`)."""
    actions = actions_of(params)
    reasons: list[str | None] = []
    evidence: list[str | None] = []
    spans_of_suspects = iter(spans)
    for is_suspect in suspect.to_pylist():
        row = next(spans_of_suspects) if is_suspect else []
        is_dropped = any(actions[span.kind] == "drop" for span in row)
        is_rejected = is_dropped or 0 < params.max_spans < len(row)
        reasons.append(PII if is_rejected else None)
        evidence.append(_evidence(row, 0 if is_dropped else params.max_spans) if is_rejected else None)
    return pa.array(reasons, pa.string()), pa.array(evidence, pa.string())


def _evidence(spans: Sequence[Span], limit: int) -> str:
    """Return counts and byte spans of the original text, never a value: evidence is read by people."""
    counts = {name: sum(f"pii_{span.kind}" == name for span in spans) for name in COUNTS}
    shown = [[span.kind, span.start, span.end] for span in spans[:_SPANS_SHOWN]]
    return json.dumps({**counts, "limit": limit, "spans": shown}, sort_keys=True, separators=(",", ":"))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Find names by the model, if there is one, then scrub every shard by itself.

    Raises RecipeError when pseudonyms are asked for without a key, or for an unknown action or region.
    """
    import phonenumbers

    if params.action not in ("redact", "pseudonymize", "drop"):
        message = f"scrub_pii.action is {params.action!r}; use redact, pseudonymize or drop"
        raise RecipeError(message)
    if is_keyed(params) and not params.key.value:
        message = f"scrub_pii.action is pseudonymize, which needs a secret key; set {KEY_VARIABLE}"
        raise RecipeError(message)
    unknown = sorted(set(params.regions) - phonenumbers.SUPPORTED_REGIONS)
    if unknown:
        message = f"scrub_pii.regions has {', '.join(unknown)}; use two-letter countries of ISO 3166, such as US"
        raise RecipeError(message)
    for column, cache in (("text", "names"), ("title", "")) if named_kinds(params) else ():
        shards = on.map(
            partial(find_names, column=column),
            shards,
            layer=Layer(reads=(column, "language"), stores=(FOUND + column,), shared=True),
            prepare=partial(EntityFinder, params.model),
            cache=cache,
        )
    layer = Layer(stores=(*COUNTS, REDACTIONS.name, MISSED.name), changes=("url", "text", "title", "chars"))
    return on.map(partial(scrub, params=params), shards, layer=layer)


def is_keyed(params: Params) -> bool:
    """Return whether any kind is pseudonymized, which needs a key."""
    return "pseudonymize" in actions_of(params).values()


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the folder of the model."""
    return (params.model,) if params.model else ()


def check_files(params: Params) -> None:
    """Raise RecipeError unless the model can be read and has the labels that are named, and spaCy is installed."""
    if not params.model:
        return
    known = EntityFinder(params.model).labels
    if unknown := sorted(set(params.labels) - set(known)):
        message = f"labels has {', '.join(unknown)}; {params.model} finds {', '.join(known) or 'nothing that it names'}"
        raise RecipeError(message)


def _idle(params: Params, profiles: Mapping[str, Any]) -> tuple[Idle, ...]:
    """Return that nothing is looked for, that a model is not asked, or what it read and found nothing of."""
    idle = []
    if not actions_of(params):
        idle.append(Idle("every kind of personal data is kept", "give one another action in `kinds` of `scrub_pii`"))
    wanted = named_kinds(params)
    if params.model and not wanted:
        idle.append(
            Idle("`name` and `address` are kept, so that `model` reads nothing", "give one an action in `kinds`")
        )
    counts = {kind: profiles[f"pii_{kind}"] for kind in wanted if f"pii_{kind}" in profiles}
    if counts and not any(profile["count"] for profile in counts.values()):
        return (
            *idle,
            Idle("no text is in the language of `model`", "name a pipeline of the language of the documents"),
        )
    idle += [
        Idle(f"`model` finds no {kind}", f"look at what its labels are, and which of them `labels` takes for {kind}")
        for kind, profile in counts.items()
        if not profile["sum"]
    ]
    return tuple(idle)


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    actions = set(actions_of(params).values())
    if actions == {"drop"}:
        yield Canceled("max_spans", "`drop` rejects a document for one finding", "give a kind another action")
    if not params.model:
        yield Canceled("labels", "`model` names no pipeline", "name one in `model`")
    if "pseudonymize" not in actions:
        yield Canceled(
            "key_name", "no kind is pseudonymized", "write `action: pseudonymize`, or name a kind in `kinds`"
        )


def conceal(params: Mapping[str, Any], documents: pa.RecordBatch) -> pa.Array | None:
    """Return texts without the personal data that a run with the params of a manifest finds; None if a model does."""
    if BY_MODEL & set(recorded_actions(params)):
        return None
    (concealed,) = scrub(iter([documents]), params=_looking(params, dict.fromkeys(recorded_actions(params), "redact")))
    return concealed.column("text")


def left(params: Mapping[str, Any], documents: pa.RecordBatch) -> dict[str, int]:
    """Return in how many documents a run with the params of a manifest finds each kind, without those of a model.

    What such a run writes in place of a finding, a pseudonym too, is none.
    """
    looking = replace(_looking(params, recorded_actions(params)), public_mail=tuple(params.get("public_mail", ())))
    (searched,) = scrub(iter([documents]), params=looking)
    counts = {kind: searched.column(f"pii_{kind}") for kind in actions_of(looking)}
    return {kind: pc.sum(pc.greater(column, 0)).as_py() or 0 for kind, column in counts.items()}


def _looking(params: Mapping[str, Any], actions: Mapping[str, str]) -> Params:
    """Return params that look for what those of a manifest do, but for kinds of a model, and do so about each kind."""
    named = {name: params[name] for name in ("document_regions", "public_ips") if name in params}
    kinds: dict[str, Any] = {kind: actions.get(kind, "keep") for kind in KINDS if kind not in BY_MODEL}
    return Params(regions=tuple(params.get("regions", Params().regions)), kinds=kinds, **named)


def remarks(params: Params) -> Iterator[str]:
    """Yield that the secret of pseudonyms is not here."""
    if is_keyed(params) and not params.key.value:
        yield (
            f"`pseudonymize` needs a secret, and {KEY_VARIABLE} is not set here; set it, or the password of the "
            "Airflow connection refinery_pii, where the recipe runs"
        )


STAGE = Stage(
    name="scrub_pii",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, *(pa.field(name, pa.int32()) for name in COUNTS), REDACTIONS, MISSED]),
    version=7,
    splits=True,
    clears_personal_data=True,
    libraries={"google-re2": always, "phonenumbers": always, "publicsuffixlist": always, UNICODE: always},
    resources=resources,
    check_files=check_files,
    has_state=lambda params: bool(named_kinds(params)),
    secret=lambda params: "key" if is_keyed(params) else "",
    idle=_idle,
    profiled=(*COUNTS, MISSED.name, "language"),
    reasons=(PII,),
    title="Remove personal data",
    canceled=canceled,
    remarks=remarks,
    spans=Spans(REDACTIONS.name, KINDS, recorded_actions, conceal, left),
    cost=UnitCost(0.23, 1.01, 0.01, 2, requests=Requests(13, 3), rows=1.0, published=0.95),
    changes=("url", "text", "title", "chars"),
    derived_from=("url", "text", "title", "language"),
)
