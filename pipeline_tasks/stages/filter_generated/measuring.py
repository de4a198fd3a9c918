"""Makes documents of generated texts, and measures each against the window of its source: nothing is decided."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators.prompt import Prompt, PromptParams, read_prompts
from pipeline_tasks.schema import GENERATION, LOCATOR, N_GENERATED, OF_GENERATOR, OFFSPRING, ORIGIN, RIGHTS
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.stage import Batches, FilePath
from pipeline_tasks.stages.filter_language import LABEL, LABELS, PROBABILITIES, Reading, predict
from pipeline_tasks.text.words.language_codes import parse_language

if TYPE_CHECKING:
    from pipeline_tasks.text.faith.comparing import Differences

TEXTS, FAITHFULNESS = "generated", "faithfulness"

SPANS_SHOWN = 20
"""Places that are stored of a document, at most."""

SPAN = pa.struct(
    [
        pa.field("kind", pa.string()),  # `figures`, `dates`, `units`, `names`, `negations`, `leaks` or `invented`
        pa.field("start", pa.int64()),  # first code point of the generated text that its source does not have
        pa.field("end", pa.int64()),  # past the last one
    ]
)
"""Where a generated text says what its source does not; never what."""

MEASURES = pa.struct(
    [
        pa.field("figures", pa.int32()),  # that the source does not have, as for the next six
        pa.field("dates", pa.int32()),
        pa.field("units", pa.int32()),
        pa.field("names", pa.int32()),
        pa.field("negations", pa.int32()),
        pa.field("leaks", pa.int32()),
        pa.field("invented", pa.int32()),  # sentences that do not speak of it (`text.faith.grounding`)
        pa.field("grounded", pa.float64()),  # share of its stems that the source has; null of a translation
        pa.field("refused", pa.bool_()),
        pa.field("copied", pa.float64()),  # share of its n-grams of `text.faith.overlap.COPIED` words
        pa.field("longest_copied", pa.int32()),  # words
        pa.field("length_ratio", pa.float64()),  # of its characters and those of its source's window
        pa.field("repeated", pa.float64()),  # share of its n-grams of `text.faith.overlap.REPEATED` words
        pa.field("language", pa.string()),  # as the model of languages reads it; null where it is too short
        pa.field("foreign", pa.float64()),  # probability of that language, if it is not the wanted one; else 0
        pa.field("shortest", pa.float64()),  # length ratios that its prompt allows; null where no prompt says
        pa.field("longest", pa.float64()),
        pa.field("stop", pa.string()),  # `generators.generator.Stop`
        pa.field("detail", pa.string()),  # more of that, never content
        pa.field("spans", pa.list_(SPAN)),
    ]
)

COUNTED = ("figures", "dates", "units", "names", "negations", "leaks", "invented")
"""Measures that have spans."""

CARRIED = frozenset((*LOCATOR.names, *RIGHTS.names))
"""Columns that a generated document has of its source; those that follow from the source's text are null."""

_LEAST_CHARS = 20
"""Characters of a text whose language is asked."""

_PROMPT_WORDS = 5
"""Words of a sentence of a prompt that is no text when a model repeats it."""


class _Text(NamedTuple):
    """A generated text with its source: the row of the batch, and the columns of both."""

    row: int
    entry: Mapping[str, Any]
    parent: str
    window: str
    language: str


def unfold(documents: Batches, *, prompts: Mapping[str, PromptParams], model: FilePath) -> Batches:
    """Yield the texts that documents bring, as documents with `faithfulness`, in the order of their sources."""
    read = {prompt.name: prompt for prompt in read_prompts(prompts)}
    for batch in documents:
        yield _unfolded(batch, read, model)


def _unfolded(batch: pa.RecordBatch, prompts: Mapping[str, Prompt], model: FilePath) -> pa.RecordBatch:
    texts = [*_texts(batch)]
    written = pa.array([text.entry["text"] or "" for text in texts], pa.large_string())
    wanted = [_wanted_language(text, prompts) for text in texts]
    parents = batch.take(pa.array([text.row for text in texts], pa.int64()))
    columns = {
        field.name: parents.column(field.name) if field.name in CARRIED else pa.nulls(len(texts), field.type)
        for field in batch.schema
        if field.name not in (TEXTS, N_GENERATED)
    }
    columns |= {
        "id": pa.array([_identity(text) for text in texts], pa.string()),
        "text": written,
        "chars": pa.array([len(text.entry["text"] or "") for text in texts], pa.int64()),
        "language": pa.array([language or None for language in wanted], pa.string()),
        ORIGIN: pa.array([OF_GENERATOR] * len(texts), pa.string()),
        "parent": pa.array([text.parent for text in texts], pa.string()),
        "generation": pa.array([_generation(text.entry) for text in texts], OFFSPRING.field("generation").type),
        FAITHFULNESS: pa.array(
            [
                _measures(text, language, read, prompts.get(text.entry["prompt"]))
                for text, language, read in zip(texts, wanted, _languages(written, model), strict=True)
            ],
            MEASURES,
        ),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _texts(batch: pa.RecordBatch) -> Iterator[_Text]:
    columns = (batch.column(name) for name in (TEXTS, "id", "text", "language"))
    for row, (entries, parent, source, language) in enumerate(zip(*columns, strict=True)):
        if not entries.is_valid or not len(entries):
            continue
        whole = source.as_py() or ""
        for entry in entries.as_py():
            yield _Text(row, entry, parent.as_py(), whole[entry["start"] : entry["end"]], language.as_py() or "")


def _identity(text: _Text) -> str:
    """Return the id of a generated document: two texts of one prompt and window, or equal ones of two, share none."""
    entry = text.entry
    return digest_of([text.parent, entry["prompt"], entry["start"], entry["end"], entry["text"]], 32)


def _generation(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: entry[field.name] for field in GENERATION}


def _prompt_of(text: _Text, prompts: Mapping[str, Prompt]) -> Prompt | None:
    """Return the prompt of a text, None for one that is not named; RecipeError if that of its name is another one."""
    prompt, asked = prompts.get(text.entry["prompt"]), text.entry["prompt_digest"]
    if prompt and asked and prompt.digest != asked:
        message = (
            f"filter_generated: prompts: {prompt.name} is another prompt than the one that texts were generated by "
            f"({prompt.digest[:16]}, and not {asked[:16]}); leave `prompts` out, and those that generate are taken"
        )
        raise RecipeError(message)
    return prompt


def _wanted_language(text: _Text, prompts: Mapping[str, Prompt]) -> str:
    prompt = _prompt_of(text, prompts)
    return (prompt.language if prompt else "") or text.language


def _languages(texts: pa.Array, model: FilePath) -> list[tuple[str, float]]:
    """Return the language of each text, "" for one that is too short, and its probability."""
    if not len(texts):
        return []
    reading = Reading(model, "text", 10_000, (0.0,), _LEAST_CHARS)
    batch = pa.RecordBatch.from_arrays([texts], names=["text"])
    found: list[tuple[str, float]] = []
    for predicted in predict(iter([batch]), reading=reading):
        labels, scores = predicted.column(LABELS).to_pylist(), predicted.column(PROBABILITIES).to_pylist()
        found += [_language(label[0], score[0]) for label, score in zip(labels, scores, strict=True)]
    return found


def _language(label: str | None, score: float) -> tuple[str, float]:
    return (parse_language(label.removeprefix(LABEL)).language, float(score)) if label else ("", 0.0)


def _measures(text: _Text, wanted: str, read: tuple[str, float], prompt: Prompt | None) -> dict[str, Any]:
    from pipeline_tasks.text.faith.comparing import Differences, compare

    entry, (language, score) = text.entry, read
    bounds = {"shortest": prompt.shortest, "longest": prompt.longest} if prompt else {}
    told = {"stop": entry["stop"], "detail": entry["detail"], **bounds}
    written = entry["text"] or ""
    is_foreign = bool(language and wanted) and language != wanted.partition("-")[0]
    differences = Differences()
    if written.strip():
        differences = compare(text.window, written, text.language, wanted, _sentences(prompt))
    return {
        **told,
        **_counts(differences),
        "language": language or None,
        "foreign": round(score, 6) if is_foreign else 0.0,
    }


def _counts(found: "Differences") -> dict[str, Any]:
    places = {kind: getattr(found, kind) for kind in COUNTED}
    spans = [{"kind": kind, "start": start, "end": end} for kind in COUNTED for start, end in places[kind]]
    return {
        **{kind: len(places[kind]) for kind in COUNTED},
        "grounded": None if found.grounded is None else round(found.grounded, 6),
        "refused": found.refused,
        "copied": round(found.copied, 6),
        "longest_copied": found.longest_copied,
        "length_ratio": round(found.length_ratio, 6),
        "repeated": round(found.repeated, 6),
        "spans": spans[:SPANS_SHOWN],
    }


def _sentences(prompt: Prompt | None) -> Sequence[str]:
    """Return what a model is told of how to write, sentence by sentence."""
    if prompt is None:
        return ()
    from pipeline_tasks.text.faith.vocabulary import sentences

    told = f"{prompt.system}\n{prompt.before}\n{prompt.after}"
    found = (told[start:end].strip() for start, end in sentences(told))
    return tuple(sentence for sentence in found if len(sentence.split()) >= _PROMPT_WORDS)
