"""Make documents of generated texts, and reject those that do not say what their sources say."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Limit, Ratio
from pipeline_tasks.facets import Bound, UnitCost
from pipeline_tasks.generators.prompt import PromptParams, prompt_files, read_prompts
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import DOCUMENT, GENERATED, N_GENERATED, OF_SOURCE, OFFSPRING, ORIGIN
from pipeline_tasks.stage import Batches, Engine, FilePath, Layer, Shards, Stage, always, reject, replace_columns
from pipeline_tasks.stages.filter_generated.deciding import MEASURED, NAME, REASONS, Decision, failures_of, verdicts
from pipeline_tasks.stages.filter_generated.measuring import FAITHFULNESS, MEASURES, TEXTS, unfold
from pipeline_tasks.stages.filter_language import PACKAGED, packaged_model

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Params:
    """Which documents go on, and bounds on what a generated one may say that its source does not.

    `keep` is `both`, or only one: sources that do not go on have the reason `source`, generated documents `generated`.

    `figures`, `dates`, `units`, `names` and `negations` are how many of each may be in a text that the window of the
    source does not have (`text.faith`): 0, as one is enough for a text to say what nobody wrote. What a figure is worth
    counts, not how it is written: `twelve` is 12, `1.5 million` is 1,500,000, `3 km` is 3,000 m. A figure that is said
    to be rounded may be so by 5 %. Names are words with capitals inside sentences; in German, where every noun has one,
    those without an article; without capitals, surnames, transcriptions and places. A negation counts where the
    sentences of the source that say the same have none, and where one of the source is lost that a text restates. Of
    languages without words in `text.faith.words`, digits, signs and capitals are read; in translations names and
    negations are not compared.

    `grounded` is the share of a text's stems that its source has, at least. Faithful rewrites have 0.57 or more, texts
    about nothing less than 0.4, and those of other sources less than 0.35. `invented` is how many sentences of three
    stems or more may come from elsewhere: less than three tenths of their stems are the source's, or of those that they
    set beside 8 words in a row of a sentence, that sentence has less, and they merge no neighbors. Where words have no
    blanks, characters stand for stems. Neither is measured in translations. Prompts that ask for more than the text
    says (examples, explanations) need a lower `grounded` and a higher `invented`.

    `leaks` are marks of a chat, stretches of the prompt, and first and last lines that speak to the reader or of the
    task, and not of the source. `copied` is the share of n-grams of 8 words that are the source's: above 0.9 a text
    says nothing that the source does not say as well. `shortest` and `longest` are ratios of the characters of the text
    and of the window; texts of a prompt in `prompts` have those that its file says. `repeated` is the share of n-grams
    of 4 words that a text has had before: a model in a loop has nearly all, prose less than a tenth. `language` is the
    probability from which another language than the source's, or than that of the prompt, rejects (0.65, as
    `filter_language`). `unfinished` says what is done about a text that was cut at `max_tokens`.

    `prompts` are those of the stage that generates: their languages, lengths and sentences. `model` is the fastText
    model that reads languages; empty: that of `filter_language`.
    """

    keep: Literal["both", "generated", "source"] = "both"
    figures: Limit = 0.0
    dates: Limit = 0.0
    units: Limit = 0.0
    names: Limit = 0.0
    negations: Limit = 0.0
    leaks: Limit = 0.0
    grounded: Ratio = 0.45
    invented: Limit = 0.0
    copied: Ratio = 0.9
    shortest: Ratio = 0.05
    longest: Limit = 4.0
    repeated: Ratio = 0.5
    language: Ratio = 0.65
    unfinished: Literal["reject", "keep"] = "reject"
    prompts: Mapping[str, PromptParams] = field(default_factory=dict)
    model: FilePath = PACKAGED


def decision_of(params: Params) -> Decision:
    """Return what of the params decides on what was measured."""
    bounds = {measure.param: float(getattr(params, measure.param)) for measure in MEASURED}
    return Decision(bounds, params.keep, params.unfinished)


def decide(offspring: Batches, *, decision: Decision) -> Batches:
    """Reject generated documents by their measures."""
    for batch in offspring:
        yield reject(batch, *verdicts(batch.column(FAITHFULNESS).to_pylist(), decision))


def pass_on(sources: Batches, *, decision: Decision) -> Batches:
    """Take the generated texts off the documents that bring them, which go on or are rejected as sources."""
    for batch in sources:
        rows = batch.num_rows
        columns = {field.name: pa.nulls(rows, field.type) for field in OFFSPRING}
        columns[ORIGIN] = pa.array([OF_SOURCE] * rows, pa.string())
        columns[FAITHFULNESS] = pa.nulls(rows, MEASURES)
        bare = replace_columns(batch.drop_columns([TEXTS, N_GENERATED]), columns)
        yield reject(bare, *verdicts([None] * rows, decision))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Measure the generated texts of each shard, then decide: other bounds find the measures.

    Behind each shard of sources comes one of their offspring, so that those of two inputs are those of each.
    """
    measuring = partial(unfold, prompts=params.prompts, model=params.model)
    measured = on.map(measuring, shards, shared=True)
    decision = decision_of(params)
    decided = on.map(partial(decide, decision=decision), measured, layer=Layer(reads=(FAITHFULNESS,)))
    layer = Layer(reads=(TEXTS, N_GENERATED), stores=(*OFFSPRING.names, FAITHFULNESS))
    sources = on.map(partial(pass_on, decision=decision), shards, layer=layer)
    return tuple(chain.from_iterable(zip(sources, decided, strict=True)))


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the model of languages, and the prompts of one's own."""
    return (params.model or packaged_model(), *prompt_files(params.prompts))


def check_files(params: Params) -> None:
    """Raise RecipeError for a prompt that cannot be read."""
    read_prompts(params.prompts)


def bounds(params: Params) -> tuple[Bound, ...]:
    """Return the bounds on measures; of lengths those of texts whose prompts say none."""
    return tuple(
        Bound(
            measure.param,
            float(getattr(params, measure.param)),
            f"{NAME}:{measure.why}",
            columns=(FAITHFULNESS,),
            measured=partial(_measured, name=measure.field),
            rejects="below" if measure.rejects == "below" else "above",
            most=1.0 if measure.param in _RATIOS else math.inf,
            is_exact=False,
        )
        for measure in MEASURED
    )


_RATIOS = frozenset({"grounded", "copied", "shortest", "repeated", "language"})


def _measured(batch: pa.RecordBatch, *, name: str) -> pa.Array:
    return pc.cast(pc.struct_field(batch.column(FAITHFULNESS), name), pa.float64())


def redecide(params: Params, batch: pa.RecordBatch, others: Sequence[Mapping[str, float]]) -> list[pa.Array]:
    """Return why each row is rejected by other bounds, null for one that is kept."""
    now = decision_of(params)
    rows = batch.column(FAITHFULNESS).to_pylist()
    reasons = batch.column("reason").to_pylist() if "reason" in batch.schema.names else [None] * len(rows)
    decided = []
    for other in others:
        then = Decision({**now.bounds, **other}, now.keep, now.unfinished)
        failed = [failures_of(row, then, spans=False) if row else [] for row in rows]
        whys = (
            (failures[0]["rule"] if failures else None) if row else reason
            for row, reason, failures in zip(rows, reasons, failed, strict=True)
        )
        decided.append(pa.array(whys, pa.string()))
    return decided


def remarks(params: Params) -> Iterator[str]:
    """Yield the bounds by which a text may say anything."""
    for name in ("figures", "dates", "units", "names", "negations", "invented"):
        if getattr(params, name) == math.inf:
            yield f"`{name}` has no bound, so a text may have {name} that its source does not have"


STAGE = Stage(
    name=NAME,
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    reads=pa.schema(
        [
            *DOCUMENT,
            pa.field("language", pa.string()),
            pa.field(TEXTS, pa.list_(GENERATED)),
            pa.field(N_GENERATED, pa.int64()),
        ]
    ),
    writes=pa.schema([*DOCUMENT, pa.field("language", pa.string()), *OFFSPRING, pa.field(FAITHFULNESS, MEASURES)]),
    version=1,
    splits=True,
    conserves="offspring",
    libraries={UNICODE: always},
    profiled=("chars", "language", ORIGIN),
    reasons=REASONS,
    replaces=(f"{NAME}:source", f"{NAME}:generated"),
    title="Make documents of generated texts that say what their sources say",
    removes="unfit",
    bounds=bounds,
    redecide=redecide,
    remarks=remarks,
    cost=UnitCost(0.6, 1.3, 0.6, 6),
    derived_from=("text", "id", "language", TEXTS, N_GENERATED),
)
