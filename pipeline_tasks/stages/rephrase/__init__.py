"""Have a model write of documents, by prompts: questions and answers, plain words, summaries, translations."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.conditions import Condition, any_of, columns_read, failing
from pipeline_tasks.constraints import MOST_ROWS, Range, Seed
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import UnitCost, Wiring
from pipeline_tasks.generators import kinds
from pipeline_tasks.generators.generator import Generator, Model, Sampling
from pipeline_tasks.generators.prompt import Prompt, PromptParams, prompt_files, read_prompts
from pipeline_tasks.schema import DOCUMENT, GENERATED, N_GENERATED
from pipeline_tasks.stage import (
    Batches,
    Engine,
    FilePath,
    KeptRows,
    Layer,
    Parts,
    Prepare,
    Shards,
    Stage,
    replace_columns,
)
from pipeline_tasks.stages.rephrase.writing import NothingKept, Plan, as_columns, digest_of_model, written_of

pc: Any = pyarrow.compute

TEXTS = "generated"
"""Column: what the model wrote, or why it did not, in the order of the prompts' names and then of windows."""

FAILED, CUT = "generated_failed", "generated_cut"
"""Columns: the share of a document's requests without a text, and of those cut at `max_tokens`; null where none was."""

CACHE = "generated"
"""The cache of what models wrote."""

WHERE = "rephrase.where"


@dataclass(frozen=True, slots=True)
class Params:
    """The model, what it is asked, and of which documents.

    `generator` is the model (`generators.Model`): its `kind`, and `model`, a folder or file, or the `name` by which a
    server knows it. `prompts` are by names of your own, which the texts have: `prompt` is one of the package
    (`question_answer`, `rewrite`, `summary`, `table_to_text`, `translation`; left out, that of your name), or `file`
    one of your own, and `language` the code of the language that a prompt asks for, as `translation` does. `where` are
    conditions as those of `select`, all of which a document must meet: of any other nothing is written.

    A document is read in windows of at most `window` characters, cut at blank lines, else behind sentences; of each,
    each prompt asks for one text. `sampling` is how tokens are drawn: `temperature` (0: greedy), `top_p`, `max_tokens`.
    Texts follow from the window, the prompt, the model, `sampling` and `seed` alone. `generated` has them, or why there
    is none: `too_long`, `refused`, `error`. `refinery model cost` foretells what they take.
    """

    generator: Model
    prompts: Mapping[str, PromptParams]
    where: Mapping[str, Condition] = field(default_factory=dict)
    window: Annotated[int, Range(200, MOST_ROWS)] = 8000
    sampling: Sampling = field(default_factory=Sampling)
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Raise RecipeError if nothing is asked."""
        if not self.prompts:
            message = "rephrase: prompts names none, so nothing is asked of the model; write `prompts: {rewrite: {}}`"
            raise RecipeError(message)


def rephrase(
    generator: Generator,
    docs: Batches,
    known: KeptRows,
    *,
    prompts: Mapping[str, PromptParams],
    where: Mapping[str, Condition],
    asking: Plan,
) -> Batches:
    """Append what the model wrote of each document, and how much that is; every document goes on as it is.

    What is known is not asked again. All windows of a batch are handed to the generator at once.
    """
    plan = replace(asking, prompts=read_prompts(prompts))
    digest = digest_of_model(generator)
    for batch in docs:
        texts = zip(batch.column("text").to_pylist(), chosen(batch, where), strict=True)
        asked = [plan.asked(text, digest) if is_chosen and text else [] for text, is_chosen in texts]
        yield replace_columns(batch, _columns(written_of(generator, asked, known)))


def chosen(batch: pa.RecordBatch, where: Mapping[str, Condition]) -> list[bool]:
    """Return which documents meet all conditions."""
    masks = [failing(batch, name, condition, WHERE) for name, condition in where.items()]
    return pc.invert(any_of(masks)).to_pylist() if masks else [True] * batch.num_rows


def _columns(documents: list[list[Mapping[str, Any]]]) -> dict[str, pa.Array]:
    """Return the columns of what was written of each document."""
    failed = [[each["text"] is None for each in document] for document in documents]
    cut = [[each["stop"] == "length" for each in document] for document in documents]
    return {
        TEXTS: as_columns(documents),
        N_GENERATED: pa.array(map(len, documents), pa.int64()),
        FAILED: pa.array(map(_share, failed), pa.float64()),
        CUT: pa.array(map(_share, cut), pa.float64()),
    }


def _share(flags: list[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def plan_of(params: Params, prompts: tuple[Prompt, ...] = ()) -> Plan:
    """Return what of the params decides on requests; a kernel reads the prompts where it runs."""
    return Plan(prompts, params.window, params.sampling, params.seed)


def loading(params: Params) -> Prepare:
    """Return what loads the generator."""
    return partial(kinds.load, params.generator, params.sampling)


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Have the model write of every shard by itself: other documents, windows or prompts find what it wrote before."""
    columns = dict.fromkeys(("text", *columns_read(params.where)))
    return on.map(
        partial(rephrase, prompts=params.prompts, where=params.where, asking=plan_of(params)),
        shards,
        layer=Layer(reads=tuple(columns), stores=(TEXTS, N_GENERATED, FAILED, CUT)),
        prepare=loading(params),
        cache=Parts(CACHE),
    )


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the model, if it is a file or folder, and the prompts of one's own."""
    model = (params.generator.model,) if params.generator.model else ()
    return (*model, *prompt_files(params.prompts))


def check_files(params: Params) -> None:
    """Raise RecipeError for a model or a prompt that cannot be used, as far as every machine can tell."""
    read_prompts(params.prompts)
    kinds.check(params.generator)


@dataclass(frozen=True, slots=True)
class WritingAgain:
    """Has the generator write of a document again (`facets.Again`)."""

    generator: Generator
    plan: Plan
    is_exact: bool
    columns: tuple[str, ...] = (TEXTS,)
    counted: str = N_GENERATED

    @property
    def hardware(self) -> str:
        """What computes."""
        return self.generator.hardware

    def differing(self, row: pa.RecordBatch) -> float:
        """Return the share of the texts of a document that the generator writes otherwise, errors among them."""
        asked = self.plan.asked(row.column("text")[0].as_py(), digest_of_model(self.generator))
        (again,) = written_of(self.generator, [asked], NothingKept())
        stored: list[dict[str, Any]] = row.column(TEXTS)[0].as_py()
        pairs = zip_longest((each["text"] for each in again), (each["text"] for each in stored))
        return sum(bool(one != other) for one, other in pairs) / max(len(stored), 1)


def writing_again(params: Params) -> WritingAgain:
    """Return what has the model write again."""
    plan, kind = plan_of(params, read_prompts(params.prompts)), kinds.kind_of(params.generator)
    return WritingAgain(kinds.load(params.generator, params.sampling), plan, kind.is_steady)


def remarks(params: Params) -> Iterator[str]:
    """Yield that texts of a seed and no temperature are the same whatever the seed is."""
    if params.sampling.temperature == 0 and params.seed:
        yield "`seed` decides nothing at a temperature of 0; remove it, or write `sampling: {temperature: ...}`"


STAGE = Stage(
    name="rephrase",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    has_state=lambda _: True,
    libraries=kinds.libraries(lambda params: params.generator.kind),
    reads=DOCUMENT,
    reads_for=lambda params: columns_read(params.where),
    writes=pa.schema(
        [
            *DOCUMENT,
            pa.field(TEXTS, pa.list_(GENERATED)),
            pa.field(N_GENERATED, pa.int64()),
            pa.field(FAILED, pa.float64()),
            pa.field(CUT, pa.float64()),
        ]
    ),
    version=1,
    splits=True,
    engine="ray",
    profiled=(N_GENERATED, FAILED, CUT),
    title="Have a model write of documents",
    cost=UnitCost(2000.0, 2.0, 1.0, 4),
    remarks=remarks,
    again=writing_again,
    wiring=Wiring(passes={"filter_generated": ("prompts",)}),
    derived_from=("text",),
)
