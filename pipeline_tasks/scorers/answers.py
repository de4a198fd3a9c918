"""Answers of a model for rows: what is known is not asked again, and a text that it fails on is found by halves."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.scorers.faults import is_of_machine, is_panic, raised

pc: Any = pyarrow.compute

Answer = dict[str, object] | None
"""The fields of a struct; None for a text that there is nothing to say of."""

FAILURES = (RuntimeError, ValueError, LookupError, TypeError, ArithmeticError)
"""What a model raises for a text that it cannot read; all else is the machine's, or ours."""


class NothingKnown:
    """A cache that knows no row."""

    def rows(self, texts: pa.Array) -> pa.Table:
        """Return that nothing is known of any text."""
        return pa.table({"known": pa.array([False] * len(texts), pa.bool_())})


def answered(
    texts: pa.Array,
    rows: pa.Table,
    stored: pa.Array | None,
    kind: pa.DataType,
    ask: Callable[[pa.Array], Sequence[Answer]],
) -> pa.Array:
    """Return the answer for each text as a struct: the `stored` one where `rows` of a cache are known, else `ask`'s.

    The struct's `error` says why a model fails on a text; its other fields are null then.
    """
    is_known = rows.column("known").combine_chunks()
    missing = pc.indices_nonzero(pc.invert(is_known))
    asked = pa.array(_by_halves(texts.take(missing), ask), kind)
    if stored is None or len(missing) == len(texts):
        return asked
    places = np.arange(len(texts))
    places[missing.to_numpy()] = len(texts) + np.arange(len(missing))
    return pa.concat_arrays([stored.cast(kind), asked]).take(pa.array(places))


def _by_halves(texts: pa.Array, ask: Callable[[pa.Array], Sequence[Answer]]) -> list[Answer]:
    if not len(texts):
        return []
    try:
        answers = list(ask(texts))
    except BaseException as error:
        is_of_text = isinstance(error, FAILURES) or is_panic(error)
        if not is_of_text or isinstance(error, RefineryError) or is_of_machine(error):
            raise
        if len(texts) == 1:
            return [{"error": raised(error)}]
    else:
        if len(answers) != len(texts):
            message = f"the model gives {len(answers)} answers for {len(texts)} texts: restore its folder"
            raise RecipeError(message)
        return answers
    half = len(texts) // 2
    return [*_by_halves(texts.slice(0, half), ask), *_by_halves(texts.slice(half), ask)]
