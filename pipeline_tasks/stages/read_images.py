"""Has pages of files read that are images, by a model; `extract` puts their texts where the pages are."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import Bytes, Count, Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import UnitCost
from pipeline_tasks.file_types import brought_types
from pipeline_tasks.nearest import nearest
from pipeline_tasks.schema import IMAGE_TEXT, IMAGE_TEXTS, PAGE, TYPE
from pipeline_tasks.seams import all_parts
from pipeline_tasks.stage import NO_FILE, Batches, Engine, FilePath, Idle, Layer, Shards, Stage, replace_columns

if TYPE_CHECKING:  # kernels load it
    from pipeline_tasks.text.page.sandbox_pair import SandboxPair

SEAM = "refinery.image_readers"
"""The seam of models that read images: each part is a function of a folder that returns an `ImageReader`."""

ASKED, READ = "image_pages", "images_read"
"""Columns: how many pages of a file the model was asked for, and which share of them it found a text on."""


class ImageReader(Protocol):
    """A model that reads images; a text follows from its image and the model alone, and not from its neighbors."""

    def read(self, images: Sequence[bytes]) -> list[str]:
        """Return the text of each image (PNG), its lines in reading order, "" where it finds none."""


@dataclass(frozen=True, slots=True)
class Params:
    """Which model reads which pages.

    `model` names a part of the seam `refinery.image_readers`, such as `rapidocr`; without one nothing is read. `folder`
    has what the model loads, if it does not carry that. A page is drawn `width` pixels wide. Of a file the first
    `most_pages` pages are read that its own reader finds no text on; `seconds` of processor time and `memory` in bytes
    bound the drawing of each.
    """

    model: str = ""
    folder: FilePath = NO_FILE
    width: Annotated[int, Range(100, 10_000)] = 1600
    most_pages: Count = 100
    seconds: Annotated[float, Range(0, 3600, above=True)] = 10.0
    memory: Bytes = 4 << 30

    def __post_init__(self) -> None:
        """Raise RecipeError for a model that no package brings, or several do."""
        if self.model and self.model not in all_parts(SEAM):
            known = ", ".join(all_parts(SEAM)) or "none"
            hint = nearest(self.model, all_parts(SEAM))
            message = f"read_images: no package here brings a model {self.model!r}{hint}; known: {known}"
            raise RecipeError(message)
        if self.model and (refused := all_parts(SEAM)[self.model].refused):
            raise RecipeError(refused)


def load(params: Params) -> ImageReader:
    """Load the model."""
    made: ImageReader = all_parts(SEAM)[params.model].load()(params.folder)
    return made


def without(pages: Batches) -> Batches:
    """Append that no page was read."""
    for batch in pages:
        yield _with(batch, [None] * batch.num_rows)


def read_pages(reader: ImageReader, pages: Batches, *, params: Params) -> Batches:
    """Append the texts of pages that are images; an image that is there again is read once in a shard."""
    from pipeline_tasks.text.page.sandbox_messages import Limits
    from pipeline_tasks.text.page.sandbox_pair import borrow_sandbox

    known: dict[bytes, str] = {}
    with borrow_sandbox(Limits(seconds=params.seconds, memory=params.memory)) as sandbox:
        for batch in pages:
            yield _with(batch, [_read(reader, row, sandbox, params, known) for row in _files(batch)])


def _files(batch: pa.RecordBatch) -> Iterator[tuple[bytes, str] | None]:
    """Yield the bytes and the type of each file of a type with pages that can be drawn, None for all other rows."""
    drawn = {name for name, card in brought_types().items() if card.image}
    for row, kind in enumerate(batch[TYPE].to_pylist()):
        payload = batch["payload"][row].as_py() if kind in drawn else None
        yield (payload, kind) if payload is not None else None


def _read(
    reader: ImageReader, file: tuple[bytes, str] | None, sandbox: "SandboxPair", params: Params, known: dict[bytes, str]
) -> list[dict[str, object]] | None:
    """Return the pages of a file that had to be read, with the texts that the model found; None if none had to."""
    from pipeline_tasks.text.page.file_reading import drawing
    from pipeline_tasks.text.page.sandbox_messages import Page

    if file is None:
        return None
    body, kind = file
    card = brought_types()[kind]
    [found] = sandbox.process(card.read, [Page(body)])
    texts = []
    for number in found.unread[: params.most_pages]:
        [image] = sandbox.process(drawing(card.image, number, params.width), [Page(body)])
        text = _text(reader, bytes(image.text), known) if image.outcome == "done" else ""
        texts.append({"page": number, "text": text})
    return texts or None


def _text(reader: ImageReader, image: bytes, known: dict[bytes, str]) -> str:
    digest = hashlib.blake2b(image, digest_size=16).digest()
    if digest not in known:
        [known[digest]] = reader.read([image])
    return known[digest]


def _with(batch: pa.RecordBatch, texts: list[list[dict[str, object]] | None]) -> pa.RecordBatch:
    column = pa.array(texts, IMAGE_TEXT)
    asked = pc.list_value_length(column).cast(pa.int32())
    shares = [np.mean([bool(page["text"]) for page in pages]) if pages else None for pages in texts]
    return replace_columns(batch, {IMAGE_TEXTS: column, ASKED: asked, READ: pa.array(shares, pa.float64())})


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the folder of the model."""
    return (params.folder,) if params.folder else ()


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Have the pages of each shard read."""
    layer = Layer(reads=("payload", TYPE), stores=(IMAGE_TEXTS, ASKED, READ))
    if not params.model:
        return on.map(without, shards, layer=layer)
    return on.map(partial(read_pages, params=params), shards, layer=layer, prepare=partial(load, params))


def idle(params: Params, _: object) -> tuple[Idle, ...]:
    """Return that no model reads."""
    if params.model:
        return ()
    return (
        Idle("no model that reads images", "name one in `model`: docs/how-to/sources/read-files-of-other-types.md"),
    )


def _libraries() -> dict[str, Callable[[Params], bool]]:
    """Return what decides which pages are read, and who reads them: libraries of types, and packages of models."""
    readers = {part.distribution: part.name for part in all_parts(SEAM).values() if part.distribution}
    drawn = (library for card in brought_types().values() if card.image for library in card.libraries)
    return {
        **{owner: partial(_is_read_by, name) for owner, name in readers.items()},
        **dict.fromkeys(drawn, lambda params: bool(params.model)),
    }


def _is_read_by(name: str, params: Params) -> bool:
    return params.model == name


STAGE = Stage(
    name="read_images",
    run=run,
    params=Params,
    resources=resources,
    idle=idle,
    has_state=lambda params: bool(params.model),
    libraries=_libraries(),
    reads=PAGE,
    writes=pa.schema(
        [*PAGE, pa.field(IMAGE_TEXTS, IMAGE_TEXT), pa.field(ASKED, pa.int32()), pa.field(READ, pa.float64())]
    ),
    version=1,
    splits=True,
    engine="ray",
    profiled=(ASKED, READ),
    title="Read pages that are images",
    cost=UnitCost(0.02, 1.00, 0.01, 2),
)
