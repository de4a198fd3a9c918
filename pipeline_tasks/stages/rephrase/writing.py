"""Has a generator write of windows of documents: each request is asked once, and one that fails costs itself alone."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import pyarrow as pa

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.generators.generator import Generator, Request, Sampling, Written
from pipeline_tasks.generators.prompt import Prompt
from pipeline_tasks.schema import GENERATED
from pipeline_tasks.scorers.answers import FAILURES, NothingKnown
from pipeline_tasks.scorers.faults import is_of_machine, is_panic, raised
from pipeline_tasks.sealed import canonical
from pipeline_tasks.stage import KeptRows
from pipeline_tasks.stages.rephrase.windows import Window, windows

WRITTEN = "written"
"""Column of the cache: what a model wrote for a request, which is known by its key."""

KIND = pa.struct(
    [
        ("text", pa.large_string()),
        ("stop", pa.string()),
        ("tokens_in", pa.int64()),
        ("tokens_out", pa.int64()),
        ("detail", pa.string()),
    ]
)
"""`generator.Written`, whose fields have these names."""

SEED_BITS = 31
"""Bits of a seed: so many take all servers (llama.cpp has 32, of which the last value means any seed)."""

ERROR: Final = "error"


class Asked(NamedTuple):
    """A request of a document: its window, the prompt, what the model gets, and the key that it is known by."""

    window: Window
    prompt: Prompt
    request: Request
    key: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What decides on requests besides texts and the model; `window` is the most code points of one."""

    prompts: tuple[Prompt, ...]
    window: int
    sampling: Sampling
    seed: int

    def asked(self, text: str, digest: str) -> list[Asked]:
        """Return what is asked of a text, of the model with that digest: by prompt, then by window."""
        found = windows(text, self.window)
        return [self._asked(text, window, prompt, digest) for prompt in self.prompts for window in found]

    def _asked(self, text: str, window: Window, prompt: Prompt, digest: str) -> Asked:
        stretch = text[window.start : window.end]
        said = canonical([prompt.digest, digest, self.sampling, self.seed, stretch])
        key = hashlib.sha256(said).hexdigest()
        seed = int(key[:8], 16) >> (32 - SEED_BITS)
        return Asked(window, prompt, Request(prompt.system, prompt.told(stretch), seed), key)


class NothingKept(NothingKnown):
    """A cache that knows no row and keeps none."""

    def keep(self, rows: pa.RecordBatch) -> None:
        """Keep nothing."""


def digest_of_model(generator: Generator) -> str:
    """Return the digest in the name of a generator's model: what it is called decides nothing."""
    return generator.name.rpartition("@")[2]


def written_of(
    generator: Generator, asked: Sequence[Sequence[Asked]], known: KeptRows
) -> list[list[Mapping[str, Any]]]:
    """Return what the model wrote for the requests of each document, as `schema.GENERATED` has it.

    What is known is not asked again, and what is written is kept as it is there, but for what the model failed on.
    """
    requests = {each.key: each.request for document in asked for each in document}
    answers = _known(known, list(requests))
    missing = [key for key in requests if key not in answers]
    for at, written in asked_by_halves(generator, [requests[key] for key in missing]):
        answers[missing[at]] = written
        if written.stop != ERROR:
            known.keep(_row(missing[at], written))
    about = {"model": generator.name, "model_license": generator.license or None}
    return [[_generated(each, answers[each.key], about) for each in document] for document in asked]


def _known(known: KeptRows, keys: list[str]) -> dict[str, Written]:
    rows = known.rows(pa.array(keys, pa.large_string()))
    if WRITTEN not in rows.column_names:
        return {}
    found = zip(keys, rows.column("known").to_pylist(), rows.column(WRITTEN).to_pylist(), strict=True)
    return {key: Written(**cast("dict[str, Any]", written)) for key, is_known, written in found if is_known}


def _row(key: str, written: Written) -> pa.RecordBatch:
    """Return a row of the cache."""
    columns = [pa.array([key], pa.large_string()), pa.array([written._asdict()], KIND)]
    return pa.RecordBatch.from_arrays(columns, names=["text", WRITTEN])


def _generated(asked: Asked, written: Written, about: Mapping[str, str | None]) -> Mapping[str, Any]:
    return {
        "prompt": asked.prompt.name,
        "prompt_digest": asked.prompt.digest,
        "start": asked.window.start,
        "end": asked.window.end,
        "tokens_in": written.tokens_in,
        "tokens_out": written.tokens_out,
        "seed": asked.request.seed,
        **about,
        "text": written.text,
        "stop": written.stop,
        "detail": written.detail or None,
    }


def asked_by_halves(generator: Generator, requests: Sequence[Request]) -> Iterator[tuple[int, Written]]:
    """Yield what a generator writes for requests, by their places.

    Where it raises for what it is asked, the requests that have no answer yet are asked by halves, until the one that
    it fails on is alone. What the machine did to it, and our own refusals, are raised.
    """
    left = dict.fromkeys(range(len(requests)))
    failure = "no answer"
    try:
        for at, written in generator.write(requests) if requests else ():
            del left[at]
            yield at, written
    except BaseException as error:
        is_of_text = isinstance(error, FAILURES) or is_panic(error)
        if not is_of_text or isinstance(error, RefineryError) or is_of_machine(error):
            raise
        failure = raised(error)
    places = list(left)
    if len(places) == len(requests) == 1:
        yield 0, Written(None, ERROR, 0, 0, failure)
        return
    half = -(-len(places) // 2)
    for part in filter(None, (places[:half], places[half:])):
        for at, written in asked_by_halves(generator, [requests[place] for place in part]):
            yield part[at], written


def as_columns(documents: Iterable[Sequence[Mapping[str, Any]]]) -> pa.Array:
    """Return what was written of documents as a column."""
    return pa.array(list(documents), pa.list_(GENERATED))
