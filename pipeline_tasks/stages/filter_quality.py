"""Sets aside texts that fail the published heuristics (Gopher, C4, FineWeb, ...) and stores what was measured."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.filters import (
    Filter,
    Floats,
    beyond,
    c4,
    c4_badwords,
    c4_paragraphs,
    cc_net,
    dclm,
    dolma,
    fineweb,
    gopher_quality,
    gopher_repetition,
    nemo,
    packs,
    seeds,
)
from pipeline_tasks.schema import DOCUMENT, EDIT_SPAN
from pipeline_tasks.stage import Batches, Engine, FilePath, Shards, Stage, reject, replace_column

DATATROVE = (gopher_repetition.FILTER, gopher_quality.FILTER, c4.FILTER, fineweb.FILTER)
"""What FineWeb asks, in its order."""

OTHERS = (
    c4_badwords.FILTER,
    c4_paragraphs.FILTER,
    dclm.FILTER,
    dolma.FILTER,
    nemo.FILTER,
    cc_net.FILTER,
    seeds.FILTER,
)
"""What C4 and other projects ask; their rules of the same name are other functions (docs/reference/profiles.md)."""

FILTERS = {card.name: card for card in (*DATATROVE, *OTHERS)}
"""Every profile by its name."""

NO_FILE = FilePath("")
BUILTIN = FilePath("builtin")

PATHLIKE, DIGEST = (".yaml", ".yml"), "sha256:"
"""How the path of packs ends, and how a manifest's name for it begins."""

SIGNALS = pa.struct([pa.field(signal, pa.float64()) for card in FILTERS.values() for signal in card.signals])
"""One field per signal of every profile, null where the profile is not asked for."""


SPANS = pa.field("edit_spans", pa.list_(EDIT_SPAN))
"""What was taken out of a text that is kept, in the order of profiles."""


class Profile(NamedTuple):
    """A profile as a recipe asks it: `bounds` has a row per rule and a column per language of its packs."""

    card: Filter
    limits: Any
    bounds: Floats


class Edit(NamedTuple):
    """Texts as a profile found them, and as it left them."""

    card: Filter
    limits: Any
    before: pa.Array
    after: pa.Array


WORDS = {"split": 0, "unicode": 1, "spacy": 3}
"""Word rules of `text.words` by name."""


@dataclass(frozen=True, slots=True)
class Params:
    """Which profiles judge, in order, and bounds that differ from theirs.

    A profile sees the text as the profiles before it left it: `c4`, `dclm` and `cc_net` remove lines, so what follows
    them judges the rest. `gopher_quality`, `gopher_repetition`, `c4` and `fineweb` are FineWeb's; `dclm`, `dolma`,
    `nemo`, `cc_net` and `seeds` each compute the functions of their own source (docs/reference/profiles.md).
    `c4_badwords` needs `bad_words`, a list (one word per line, plain or compressed) for each language that is asked;
    `c4_paragraphs` is mC4's.
    `words` is `split` (white space; the default, because prose about software is full of symbols, and a tokenizer
    that counts each as a word makes the alpha rule drop a third of good documentation), `unicode`
    (`text.words.UNICODE`) or `spacy` (English words and sentences as datatrove counts them; other languages get
    `unicode`); it is asked of FineWeb's profiles. The mappings override fields of the `Limits` of the
    filter of that name. `toxic_words` is a list of words (one per line, plain or compressed) whose share `seeds`
    bounds; without one that rule is silent. `packs` say what single languages are asked otherwise: `builtin` lets a
    language skip the rules that its writing does not fit, `fineweb2` has FineWeb-2's bounds and stop words for 30
    languages, `none` asks all languages the same; or the path of a file of your own (docs/reference/profiles.md).
    With `edit_spans`, what profiles took out of a text that is kept is told in the column of that name: rule, and first
    code point and past the last of the text as that profile found it.
    """

    profiles: tuple[str, ...] = tuple(card.name for card in DATATROVE)
    words: Literal["split", "unicode", "spacy"] = "split"
    gopher_repetition: Mapping[str, float] = field(default_factory=dict)
    gopher_quality: Mapping[str, float] = field(default_factory=dict)
    c4: Mapping[str, float | bool] = field(default_factory=dict)
    fineweb: Mapping[str, float] = field(default_factory=dict)
    c4_badwords: Mapping[str, float] = field(default_factory=dict)
    c4_paragraphs: Mapping[str, float] = field(default_factory=dict)
    dclm: Mapping[str, float] = field(default_factory=dict)
    dolma: Mapping[str, float] = field(default_factory=dict)
    nemo: Mapping[str, float] = field(default_factory=dict)
    cc_net: Mapping[str, float] = field(default_factory=dict)
    seeds: Mapping[str, float] = field(default_factory=dict)
    toxic_words: FilePath = NO_FILE
    bad_words: Mapping[str, FilePath] = field(default_factory=dict)
    packs: FilePath = BUILTIN
    edit_spans: bool = False

    def __post_init__(self) -> None:
        """Raise RecipeError for a profile or limit that nothing has, naming the nearest that exists."""
        for profile in self.profiles:
            _known(profile, tuple(FILTERS), "profile")
        for name, card in FILTERS.items():
            for key in getattr(self, name):
                _known(key, tuple(limit.name for limit in fields(card.limits)), f"limit of `{name}`")
        if not self.packs.endswith(PATHLIKE) and not self.packs.startswith(DIGEST):
            _known(self.packs, (*packs.SETS, packs.NONE), "set of packs (or path of a .yaml file)")
        if c4_badwords.FILTER.name in self.profiles and not self.bad_words:
            message = "filter_quality: profile c4_badwords has no words to find; name lists: bad_words: {en: PATH}"
            raise RecipeError(message)


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the files whose content decides the output: lists of toxic and bad words, and the packs.

    RecipeError if the packs ask what no profile has, or of what is no language.
    """
    named = FilePath(packs.path_of(params.packs))
    with contextlib.suppress(FileNotFoundError):  # whoever reads the digest says which file is missing
        packs.load(params.packs, FILTERS)
    return tuple(path for path in (params.toxic_words, *params.bad_words.values(), named) if path)


def sift(batches: Batches, *, params: Params) -> Batches:
    """Append `signals`, and set aside each row that fails a rule, with every rule that it fails as evidence.

    Kept rows get the text that the profiles left, and its `chars`; set-aside rows keep the text that they came with.
    The id stays that of the text as extracted.
    """
    read = packs.load(params.packs, FILTERS)
    profiles = [one._replace(card=_listing(packs.counting(*one[:2], read), params)) for one in asked(params, read)]
    for batch in batches:
        columns = packs.columns(batch.column("language"), read)
        yield _sifted(batch, profiles, WORDS[params.words], columns, told=params.edit_spans)


def asked(params: Params, read: packs.Packs) -> list[Profile]:
    """Return the profiles of a recipe in order, with the bounds of every language that `read` has an entry for."""
    found = []
    for card in (FILTERS[name] for name in params.profiles):
        limits = card.limits(**getattr(params, card.name))
        found.append(Profile(card, limits, packs.table(card, limits, read)))
    return found


def _listing(card: Filter, params: Params) -> Filter:
    """Return `card` with the words of the recipe's lists to look for, if it is one that looks for some."""
    from pipeline_tasks.text.words.wordlist import read

    measure: Any = card.measure  # takes lists beside what every filter takes
    if card.name == seeds.FILTER.name:
        return replace(card, measure=partial(measure, listed=tuple(sorted(read(params.toxic_words)))))
    if card.name == c4_badwords.FILTER.name:
        lists = {language: tuple(sorted(read(path))) for language, path in params.bad_words.items()}
        return replace(card, measure=partial(measure, lists=lists))
    return card


def _known(name: str, names: tuple[str, ...], what: str) -> None:
    """Raise RecipeError, naming the nearest of `names`, unless `name` is one of them."""
    if name not in names:
        near = get_close_matches(name, names, 1, cutoff=0)[0]
        message = f"filter_quality: no {what} is called {name!r}; the nearest is {near!r} of {', '.join(names)}"
        raise RecipeError(message)


def _sifted(
    batch: pa.RecordBatch, profiles: list[Profile], words: int, columns: npt.NDArray[np.intp], *, told: bool
) -> pa.RecordBatch:
    """Return `batch` measured and judged; `columns` says which bounds each row is asked, `told` whether spans are."""
    before, languages = batch.column("text"), batch.column("language")
    texts, measured = before, {}
    failures: list[list[dict[str, float | str]]] = [[] for _ in range(batch.num_rows)]
    edits = []
    for card, limits, bounds in profiles:
        came = texts
        signals, texts = card.measure(texts, languages, words, limits)
        measured[card.name] = signals
        _collect(card, bounds[:, columns], signals, failures)
        if texts is not came:
            edits.append(Edit(card, limits, came, texts))
    kept = pa.array([not failed for failed in failures], pa.bool_())
    if texts is not before:
        edited = pc.if_else(kept, texts, pc.cast(before, pa.large_string()))
        batch = replace_column(batch, "text", edited)
        batch = replace_column(batch, "chars", pc.utf8_length(edited).cast(pa.int64()))
    batch = replace_column(batch, "signals", _struct(measured, batch.num_rows))
    batch = replace_column(batch, "edit_spans", _spans(edits if told else [], kept, languages))
    reasons = pa.array([failed[0]["rule"] if failed else None for failed in failures], pa.string())
    return reject(batch, reasons, pa.array([_evidence(failed) for failed in failures], pa.string()))


def _spans(edits: Sequence[Edit], kept: pa.Array, languages: pa.Array) -> pa.Array:
    """Return what each edit took from each row that is kept."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.edits import spans

    found = []
    for card, limits, before, after in edits:
        if card.cuts is None:
            continue
        shorter = pc.not_equal(pc.binary_length(pc.fill_null(before, "")), pc.binary_length(after))
        rows = pc.indices_nonzero(pc.and_(kept, shorter))
        texts = before.take(rows)
        marks = card.cuts.trace(texts, languages.take(rows), limits)
        taken = spans.spans(*views(texts), marks, tuple(f"{card.name}:{rule}" for rule in card.cuts.rules))
        found.append(taken._replace(rows=rows.to_numpy().astype(np.int64)[taken.rows]))
    return spans.listed(found, len(kept))


def _collect(card: Filter, bounds: Floats, signals: Floats, failures: list[list[dict[str, float | str]]]) -> None:
    """Add each failed rule of each row to `failures`, with value and bound; `bounds` has shape (rules, rows)."""
    for rule, asked_of in zip(card.rules, bounds, strict=True):
        values = signals[:, card.signals.index(rule.signal)]
        for row in np.flatnonzero(beyond(rule, values, asked_of)):
            value, limit = round(float(values[row]), 6), round(float(asked_of[row]), 6)
            failures[row].append({"bound": limit, "rule": card.reason(rule), "value": value})


def _evidence(failed: list[dict[str, float | str]]) -> str | None:
    """Return failed rules as canonical JSON, null for none."""
    return json.dumps(failed, sort_keys=True, separators=(",", ":")) if failed else None


def _struct(measured: Mapping[str, Floats], rows: int) -> pa.StructArray:
    """Return all signals as one struct column; those of profiles that were not asked for are null."""
    columns = [
        pa.array(measured[card.name][:, at].copy()) if card.name in measured else pa.nulls(rows, pa.float64())
        for card in FILTERS.values()
        for at in range(len(card.signals))
    ]
    return pa.StructArray.from_arrays(columns, fields=list(SIGNALS))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Judge every shard by itself."""
    return on.map(partial(sift, params=params), shards)


STAGE = Stage(
    name="filter_quality",
    run=run,
    params=Params,
    resources=resources,
    reads=pa.schema([DOCUMENT.field("text"), DOCUMENT.field("chars"), pa.field("language", pa.string())]),
    writes=pa.schema([*DOCUMENT, pa.field("language", pa.string()), pa.field("signals", SIGNALS), SPANS]),
    version=6,
    splits=True,
    profiled=("chars", "language"),
    reasons=tuple(card.reason(rule) for card in FILTERS.values() for rule in card.rules),
    engine="spark",
    title="Judge the quality of texts by published heuristics",
)
