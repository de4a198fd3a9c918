"""Reject texts that fail the published heuristics (Gopher, C4, FineWeb, ...) and store the signals of every text."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.facets import Canceled, Requests, UnitCost
from pipeline_tasks.filters import Computed, Filter, Floats, brought_parts, fails, load_filters, packs, require_loaded
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.nearest import OR_INSTALL, near
from pipeline_tasks.schema import DOCUMENT, EDIT_SPAN, SEAM_COLUMNS, SEAMS
from pipeline_tasks.stage import Batches, Engine, FilePath, Idle, Layer, Shards, Stage, always, reject, replace_column
from pipeline_tasks.text.base import delta

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FILTERS = load_filters()
"""Every profile by its name."""

FINEWEB = ("gopher_repetition", "gopher_quality", "c4", "fineweb")
"""The profiles of FineWeb, in its order."""

BUILTIN = FilePath("builtin")

PACK_SUFFIXES, DIGEST = (".yaml", ".yml"), "sha256:"
"""Suffixes of a file of packs, and the prefix of the digest that a manifest has in its place."""

SPANS = pa.field("edit_spans", pa.list_(EDIT_SPAN))
"""What profiles removed from a text that is kept, in the order of profiles."""


EDITED, EDITED_CHARS, EDITED_SPANS = "edited_text", "edited_chars", "edited_spans"
"""Columns that `measure_texts` adds besides signals, and that no other stage gets: what the profiles left of a text
(`text.base.delta`; null: all of it), its length, and what they removed."""


class Profile(NamedTuple):
    """A profile of a recipe: `bounds` has a row per rule and a column per language of the packs."""

    card: Filter
    limits: Any
    bounds: Floats


class Edit(NamedTuple):
    """Texts before a profile, and what it computed of them."""

    card: Filter
    limits: Any
    before: pa.Array
    computed: Computed


Failure = dict[str, float | str]
"""A failed rule of a row: `rule`, `value`, `bound`."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What of the params decides signals and edits: everything but the bounds of rules.

    `stop_words` has the lists of each profile by language.
    """

    profiles: tuple[str, ...]
    words: str
    limits: Mapping[str, Mapping[str, Any]]
    stop_words: Mapping[str, Mapping[str, tuple[str, ...]]]
    edit: bool


WORDS = {"split": 0, "unicode": 1, "spacy": 3}
"""Word rules of `text.words` by name."""


@dataclass(frozen=True, slots=True)
class Params:
    """Which profiles judge, in order, and bounds that differ from theirs.

    A profile judges the text as the profiles before it left it: `c4`, `dclm` and `cc_net` leave lines out, and later
    profiles judge the rest. With `edit` a kept text becomes what they left, as in their sources, and column
    `edit_spans` lists what was removed: rule, and first and last code point (exclusive) of the text as that profile
    got it; `mend` takes lines that led to it, too, and `seam_spans` lists them. Without `edit` a kept text stays
    whole: rules on lines were made for prose, and take headings, terms, code and blank lines as well.
    `gopher_quality`, `gopher_repetition`, `c4` and `fineweb` are FineWeb's; the others each compute the functions
    of their own source (docs/reference/profiles.md).

    `words` is `split` (white space; the default, because prose about software is full of symbols, and a tokenizer
    that counts each as a word makes the alpha rule drop a third of good documentation), `unicode`
    (`text.words.UNICODE`) or `spacy` (English words and sentences as datatrove counts them; other languages get
    `unicode`). FineWeb's profiles use it.

    `limits` overrides limits of a profile. A recipe writes the profile's name as the key:
    `gopher_quality: {min_doc_words: 30}`. Lists of words are limits, too: `c4_badwords: {bad_words: {en: PATH}}`,
    `seeds: {toxic_words: PATH}`.

    `packs` are the exceptions of single languages: `builtin` lets a language skip the rules that its writing does not
    fit, `fineweb2` has FineWeb-2's bounds and stop words for 30 languages, `none` has no exceptions; or the path of a
    file of your own (docs/reference/profiles.md).
    """

    profiles: tuple[str, ...] = FINEWEB
    words: Literal["split", "unicode", "spacy"] = "split"
    limits: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict, metadata={"keys": {name: card.limits for name, card in FILTERS.items()}}
    )
    packs: FilePath = BUILTIN
    edit: bool = False
    mend: bool = field(default=True, metadata={OMITTED: True})

    def __post_init__(self) -> None:
        """Raise RecipeError for an unknown profile or set of packs, naming the nearest, or for a missing list."""
        for profile in self.profiles:
            if profile not in FILTERS:
                require_loaded(profile)
            _require_known(profile, tuple(FILTERS), "profile", OR_INSTALL)
        if not self.packs.endswith(PACK_SUFFIXES) and not self.packs.startswith(DIGEST):
            _require_known(self.packs, (*packs.SETS, packs.NONE), "set of packs (or path of a .yaml file)")
        self.resources()

    def limits_of(self, profile: str) -> "DataclassInstance":
        """Return the limits of a profile: its own, with those of the recipe in their place."""
        return FILTERS[profile].limits(**self.limits.get(profile, {}))

    def resources(self) -> tuple[FilePath, ...]:
        """Return the files that the limits of the profiles name; RecipeError if one that is needed is missing."""
        cards = [FILTERS[profile] for profile in dict.fromkeys((*self.profiles, *self.limits))]
        return tuple(path for card in cards if card.resources for path in card.resources(self.limits_of(card.name)))


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the files whose content decides the output: lists of words, and the packs.

    RecipeError if the packs name an unknown profile, bound or language.
    """
    if os.path.lexists(packs.path_of(params.packs)):  # the caller reads the digest and names the missing file
        packs.load(params.packs, FILTERS)
    return (*params.resources(), *map(FilePath, packs.paths_of(params.packs)))


def check_files(params: Params) -> None:
    """Raise RecipeError unless the packs and every list of words can be read."""
    from pipeline_tasks.text.words.wordlist import read

    packs.load(params.packs, FILTERS)
    for path in params.resources():
        read(path)


def signals_column(profile: str) -> str:
    """Return the name of the column that stores a profile's signals: a struct of float64, one field per signal."""
    return f"signals_{profile}"


def filter_texts(batches: Batches, *, params: Params) -> Batches:
    """Append the signals of each profile, and reject each row that fails a rule, with all failed rules as evidence.

    With `edit` kept rows get the text that the profiles left, and its `chars`. All others keep their text as it was.
    The id stays that of the text as extracted.
    """
    measures = measures_of(params, packs.load(params.packs, FILTERS))
    yield from decide(measure_texts(batches, measures=measures), params=params)


def measures_of(params: Params, loaded: packs.Packs) -> Measures:
    """Return what of the params, and of the packs that they name, decides signals and edits."""
    limits, lists = {}, {}
    for card in (FILTERS[profile] for profile in dict.fromkeys(params.profiles)):
        own = params.limits_of(card.name)
        limits[card.name] = {name: limit for name, limit in asdict(own).items() if name not in card.bounds}
        lists[card.name] = packs.stop_word_lists(card, own, loaded)
    return Measures(params.profiles, params.words, limits, lists, params.edit)


def measure_texts(batches: Batches, *, measures: Measures) -> Batches:
    """Append the signals of each profile, and with `edit` what they leave of each text; nothing is decided.

    A profile gets the texts as the profiles before it left them.
    """
    profiles = []
    for name in measures.profiles:
        card = packs.with_stop_words(FILTERS[name], measures.stop_words[name])
        profiles.append((card, card.limits(**measures.limits[name])))
    for batch in batches:
        yield _measured(batch, profiles, WORDS[measures.words], edit=measures.edit)


def _measured(
    batch: pa.RecordBatch, profiles: Sequence[tuple[Filter, Any]], words: int, *, edit: bool
) -> pa.RecordBatch:
    texts, languages = batch.column("text"), batch.column("language")
    edits: list[Edit] = []
    for card, limits in profiles:
        computed = card.compute_signals(texts, languages, words, limits)
        signals = _signals_struct(FILTERS[card.name], computed.signals)
        batch = replace_column(batch, signals_column(card.name), signals)
        if computed.texts is not texts:
            edits.append(Edit(card, limits, texts, computed))
        texts = computed.texts
    return _with_measured_edits(batch, texts, edits) if edit else batch


def _with_measured_edits(batch: pa.RecordBatch, texts: pa.Array, edits: list[Edit]) -> pa.RecordBatch:
    """Return `batch` with what the profiles left of each text, its length, and what they removed."""
    batch = replace_column(batch, EDITED, _edited(batch.column("text"), texts))
    chars = pc.if_else(pc.is_valid(batch.column(EDITED)), pc.utf8_length(texts).cast(pa.int64()), NO_CHARS)
    batch = replace_column(batch, EDITED_CHARS, chars)
    return replace_column(batch, EDITED_SPANS, _edit_spans(edits, batch.num_rows))


NO_CHARS = pa.nulls(1, pa.int64())[0]


def _edited(before: pa.Array, after: pa.Array) -> pa.Array:
    """Return what the profiles left of each text as differences, null where they left all of it."""
    same = pc.fill_null(pc.equal(before, after), fill_value=False)
    same = pc.or_(same, pc.is_null(before))
    return delta.encode(before, pc.if_else(same, pa.scalar(None, after.type), after))


def mends(params: Params) -> bool:
    """Return whether texts are mended: a profile takes lines out of them."""
    return params.edit and params.mend and any(FILTERS[profile].cuts for profile in params.profiles)


def decide(measured: Batches, *, params: Params) -> Batches:
    """Reject each row whose signals fail a rule; give kept rows the texts that the profiles left, where measured."""
    loaded = packs.load(params.packs, FILTERS)
    profiles = resolve_profiles(params, loaded)
    for batch in measured:
        columns = packs.bound_columns(batch.column("language"), loaded)
        yield _decided(batch, profiles, columns, mend=mends(params))


def resolve_profiles(params: Params, loaded: packs.Packs) -> list[Profile]:
    """Return the profiles of a recipe in order, with the bounds of every language that `loaded` has an entry for."""
    profiles = []
    for card in (FILTERS[name] for name in params.profiles):
        limits = params.limits_of(card.name)
        profiles.append(Profile(card, limits, packs.bounds_table(card, limits, loaded)))
    return profiles


def _require_known(name: str, names: tuple[str, ...], kind: str, hint: str = "") -> None:
    """Raise RecipeError, naming the nearest of `names` and another way out, unless `name` is one of them."""
    if name not in names:
        [meant] = near(name, names)
        nearest = f"the nearest is {meant!r} of {', '.join(names)}{hint}"
        message = f"filter_quality: no {kind} is called {name!r}; {nearest}"
        raise RecipeError(message)


def _decided(
    batch: pa.RecordBatch, profiles: list[Profile], columns: npt.NDArray[np.intp], *, mend: bool
) -> pa.RecordBatch:
    """Return `batch` with verdicts and edits; `columns` is the column of `Profile.bounds` for each row."""
    failures: list[list[Failure]] = [[] for _ in range(batch.num_rows)]
    for card, _, bounds in profiles:
        _collect_failures(card, bounds[:, columns], batch.column(signals_column(card.name)), failures)
    kept = pa.array([not failed for failed in failures], pa.bool_())
    if EDITED in batch.schema.names:
        spans = _kept_spans(batch, kept)
        batch = _with_edits(batch, kept, mend=mend).drop_columns([EDITED, EDITED_CHARS, EDITED_SPANS])
    else:
        spans = pa.array([[]] * batch.num_rows, SPANS.type)
    batch = replace_column(batch, SPANS.name, spans)
    reasons = pa.array([failed[0]["rule"] if failed else None for failed in failures], pa.string())
    return reject(batch, reasons, pa.array([_evidence(failed) for failed in failures], pa.string()))


def _with_edits(batch: pa.RecordBatch, kept: pa.Array, *, mend: bool) -> pa.RecordBatch:
    """Return `batch` with the edited text of kept rows."""
    from pipeline_tasks.text.edits.seams import with_cut

    is_edited = pc.and_(kept, pc.is_valid(batch.column(EDITED)))
    before = pc.cast(batch.column("text"), pa.large_string())
    left = delta.decode(before.filter(is_edited), batch.column(EDITED).filter(is_edited), before.type)
    if mend:
        return with_cut(batch, left, is_edited)
    texts = pc.replace_with_mask(before, is_edited, left) if len(left) else batch.column("text")
    chars = pc.if_else(is_edited, batch.column(EDITED_CHARS), batch.column("chars"))
    return replace_column(replace_column(batch, "text", texts), "chars", chars)


def _kept_spans(batch: pa.RecordBatch, kept: pa.Array) -> pa.Array:
    """Return the removed spans of kept rows; an empty list for any other row."""
    none = pa.array([[]] * batch.num_rows, SPANS.type)
    return pc.if_else(kept, batch.column(EDITED_SPANS).cast(SPANS.type), none)


def _edit_spans(edits: Sequence[Edit], count: int) -> pa.Array:
    """Return the spans that each edit removed from each row."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.edits import spans

    removed = []
    for card, limits, before, (_, after, lines) in edits:
        if card.cuts is None:
            continue
        rows = pc.indices_nonzero(pc.not_equal(pc.binary_length(pc.fill_null(before, "")), pc.binary_length(after)))
        texts = before.take(rows)
        marks = card.cuts.trace(texts, None if lines is None else lines.take(rows), limits)
        cut = spans.find_spans(*views(texts), marks, tuple(f"{card.name}:{rule}" for rule in card.cuts.rules))
        removed.append(cut._replace(rows=rows.to_numpy().astype(np.int64)[cut.rows]))
    return spans.span_lists(removed, count)


def _collect_failures(card: Filter, bounds: Floats, signals: pa.StructArray, failures: list[list[Failure]]) -> None:
    """Add each failed rule of each row to `failures`, with value and bound; `bounds` has shape (rules, rows)."""
    for rule, row_bounds in zip(card.rules, bounds, strict=True):
        values = signals.field(rule.signal).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(fails(rule, values, row_bounds)):
            value, bound = round(float(values[row]), 6), round(float(row_bounds[row]), 6)
            failures[row].append({"bound": bound, "rule": card.reason(rule), "value": value})


def _evidence(failed: list[Failure]) -> str | None:
    """Return failed rules as canonical JSON, null for none."""
    return json.dumps(failed, sort_keys=True, separators=(",", ":")) if failed else None


def _signals_struct(card: Filter, values: Floats) -> pa.StructArray:
    """Return signals of shape (rows, signals) as a struct column."""
    columns = [pa.array(column.copy(), pa.float64()) for column in values.T]
    return pa.StructArray.from_arrays(columns, names=list(card.signals))


def writes_for(params: Params) -> pa.Schema:
    """Return the columns of signals, one per profile, and those of an edit."""
    cards = [FILTERS[profile] for profile in dict.fromkeys(params.profiles)]
    signals = [pa.struct([pa.field(name, pa.float64()) for name in card.signals]) for card in cards]
    columns = [pa.field(signals_column(card.name), of) for card, of in zip(cards, signals, strict=True)]
    return pa.schema([*columns, *(SEAM_COLUMNS if mends(params) else ())])


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Measure every shard by itself, then judge it: other bounds find the measures of a run before."""
    measures = measures_of(params, packs.load(params.packs, FILTERS))
    columns = (*map(signals_column, dict.fromkeys(params.profiles)), EDITED, EDITED_CHARS, EDITED_SPANS)
    shared = Layer(reads=("text", "language"), stores=columns, shared=True)
    measured = on.map(partial(measure_texts, measures=measures), shards, layer=shared)
    changes = ("text", "chars") if params.edit else ()
    written = SEAM_COLUMNS.names if mends(params) else ()
    layer = Layer(reads=("language", *columns), stores=(SPANS.name, *written), changes=changes)
    return on.map(partial(decide, params=params), measured, layer=layer)


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    for profile in params.limits:
        if profile not in params.profiles:
            yield Canceled(profile, "`profiles` does not name it, so its rules judge nothing", "add it to `profiles`")
    cards = [FILTERS[name] for name in params.profiles]
    if params.edit and not any(card.cuts for card in cards):
        cutting = ", ".join(name for name, card in FILTERS.items() if card.cuts)
        yield Canceled("edit", f"no profile removes lines; {cutting} do", "name one of them")
    if params.words not in ("split", "spacy") and not WORDED & {*params.profiles}:
        yield Canceled("words", f"only {', '.join(sorted(WORDED))} count words by it", "name one of them")
    if params.packs != packs.NONE and not _has_entry(params):
        yield Canceled("packs", "it has no bound and no stop words of a profile that is named", "write `packs: none`")


def idle(params: Params, profiles: Mapping[str, Any]) -> tuple[Idle, ...]:
    """Return the languages of the kept rows whose stop words nobody counts: that rule passes their texts."""
    rows: Mapping[str, int] = profiles.get("language", {}).get("bins", {})
    named = (f"{code} ({counted(rows[code], 'document')})" for code in languages_without_stop_words(params, rows))
    return _no_stop_words(named)


def unread(params: Params, languages: Iterable[str]) -> tuple[Idle, ...]:
    """Return that there are no stop words of some of these languages."""
    return _no_stop_words(languages_without_stop_words(params, languages))


def _no_stop_words(named: Iterable[str]) -> tuple[Idle, ...]:
    unknown = ", ".join(named)
    return (Idle(f"no stop words of {unknown}", "list them in `packs`, or leave it"),) if unknown else ()


def languages_without_stop_words(params: Params, languages: Iterable[str]) -> list[str]:
    """Return the languages for which every rule on stop words is skipped, by packs that list those of some languages.

    None by `builtin`, whose rule is of English alone, and by packs that cannot be read, which are a fault.
    """
    try:
        loaded = packs.load(params.packs, FILTERS)
    except (OSError, RefineryError):
        return []
    if not any(pack.stop_words for pack in loaded.values()):
        return []
    codes = sorted(languages)
    columns = packs.bound_columns(pa.array(codes, pa.string()), loaded)
    skipped = [
        np.isnan(bounds[[rule.signal == card.stop_words.signal for rule in card.rules]][:, columns]).all(axis=0)
        for card, _, bounds in resolve_profiles(params, loaded)
        if card.stop_words
    ]
    is_idle = np.all(skipped, axis=0).tolist() if skipped else [False] * len(codes)
    return [code for code, idle_ in zip(codes, is_idle, strict=True) if idle_]


WORDED = frozenset({"fineweb", "gopher_quality", "gopher_repetition"})
"""Profiles that count words by the param `words`; with `spacy`, c4 counts sentences by it, too."""


def _has_entry(params: Params) -> bool:
    """Return whether packs say something of a profile that judges; True for packs that cannot be read, a fault."""
    try:
        loaded = packs.load(params.packs, FILTERS)
    except (OSError, RefineryError):
        return True
    cards = [FILTERS[name] for name in params.profiles]
    has_words = any(card.stop_words for card in cards) and any(pack.stop_words for pack in loaded.values())
    return has_words or any(name in pack.bounds for pack in loaded.values() for name in params.profiles)


def _profiles_of(distribution: str) -> frozenset[str]:
    return frozenset(name for name, part in brought_parts().items() if part.distribution == distribution)


def _names_any(profiles: frozenset[str], params: Params) -> bool:
    return not profiles.isdisjoint(params.profiles)


BROUGHT: Mapping[str, Callable[[Params], bool]] = {
    owner: partial(_names_any, _profiles_of(owner))
    for owner in {part.distribution for part in brought_parts().values()}
}
"""Distributions that bring profiles, each with whether params name one of theirs."""


def remarks(params: Params) -> Iterator[str]:
    """Yield that the params name no rules."""
    if not params.profiles:
        yield "`profiles` is empty, so no text is judged; name profiles, or remove the stage"


STAGE = Stage(
    name="filter_quality",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    reads=pa.schema([DOCUMENT.field("text"), DOCUMENT.field("chars"), pa.field("language", pa.string())]),
    writes=pa.schema([*DOCUMENT, pa.field("language", pa.string()), SPANS]),
    writes_for=writes_for,
    version=12,
    splits=True,
    libraries={UNICODE: always, **BROUGHT},
    profiled=("chars", "language", SEAMS, *map(signals_column, FILTERS)),
    reasons=tuple(card.reason(rule) for card in FILTERS.values() for rule in card.rules),
    engine="spark",
    title="Judge the quality of texts by published heuristics",
    removes="unfit",
    canceled=canceled,
    idle=idle,
    unread=unread,
    remarks=remarks,
    empty=f"the rules of FineWeb ({', '.join(FINEWEB)}), made for English prose: they reject code and lists; name "
    f"`profiles` (of {', '.join(FILTERS)}) and `packs` ({', '.join((*packs.SETS, packs.NONE))}), as recipe web does",
    cost=UnitCost(0.3, 1.25, 0.26, 5, requests=Requests(23, 4), rows=0.735, published=0.50),
    changes=("text", "chars"),
)
