"""Name the group of each document, and how much more often than its group it is used."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.stages.mix.quality import BAND, UNSCORED


def groups_of(batch: pa.RecordBatch, params: Params) -> pa.Array:
    """Return the group of each document; RecipeError if a column of `by` is not there and the params name groups."""
    names = params.by.split("+")
    missing = [name for name in names if name not in batch.schema.names]
    asked = (params.weights, params.tokens, params.epochs, params.temperature, params.bands, params.quality)
    if missing and not any(asked):
        return pa.array([""] * batch.num_rows, pa.string())  # a common budget needs no groups
    if missing:
        message = f"mix.by: the documents have no column {missing[0]!r}; put the stage that writes it before mix"
        raise RecipeError(message)
    columns = [_names_of(name, batch[name], params.bands.get(name)) for name in names]
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, "+")


def bands_of(batch: pa.RecordBatch, params: Params) -> pa.Array:
    """Return the band of each document within its group, `UNSCORED` without one and without `quality`."""
    if not params.quality:
        return pa.repeat(pa.scalar(UNSCORED, pa.int64()), batch.num_rows)
    return pc.fill_null(batch[BAND], UNSCORED)


def factor_of(band: int, factor: str, params: Params) -> Fraction:
    """Return how much more often than its group a document is used, by its band and its factor of `factors`."""
    if not params.quality:
        return Fraction(factor)
    of_band = params.quality.band_factors[band - 1] if band else Fraction(params.quality.unscored)
    return Fraction(factor) * of_band


def factors_of(batch: pa.RecordBatch, params: Params) -> pa.Array:
    """Return the factor of each document, as text of a fraction; RecipeError if a column is not there."""
    if not params.factors:
        return pa.array(["1"] * batch.num_rows, pa.string())
    names = []
    for column, table in params.factors.items():
        if column not in batch.schema.names:
            message = (
                f"mix.factors: the documents have no column {column!r}; put the stage that writes it before mix "
                "(cluster_size: `versions: {cluster_sizes: true}` in a recipe that builds)"
            )
            raise RecipeError(message)
        names.append(_in_bands(column, batch[column], list(table)))
    products = _products(params)
    at = pc.index_in(pc.binary_join_element_wise(*names, "+"), value_set=pa.array(list(products), pa.string()))
    return pa.array([str(factor) for factor in products.values()], pa.string()).take(at)


def _products(params: Params) -> dict[str, Fraction]:
    """Return the product of factors for each combination of bands, by the names of these."""
    tables = []
    for table in params.factors.values():
        names = ["", *_band_names(list(table))]
        tables.append(list(zip(names, [1.0, 1.0, *table.values()], strict=True)))
    products: dict[str, Fraction] = {}
    for bands in product(*tables):
        factor = Fraction(1)
        for _, times in bands:
            factor *= Fraction(times)
        products["+".join(name for name, _ in bands)] = factor
    return products


def _names_of(name: str, column: pa.Array, bounds: Sequence[float] | None) -> pa.Array:
    """Return the values of a column as text, those of a banded one as the names of its bands; null is ""."""
    if bounds is None:
        _require_kind(name, column.type, is_banded=False)
        return pc.fill_null(column.cast(pa.string()), "")
    return _in_bands(name, column, [f"{bound:g}" for bound in bounds], bounds)


def _in_bands(name: str, column: pa.Array, edges: Sequence[str], bounds: Sequence[float] = ()) -> pa.Array:
    """Return the names of the bands between `edges` that a column's values are in; null is "".

    `edges` are the `bounds` as written.
    """
    _require_kind(name, column.type, is_banded=True)
    bands = pa.array(_band_names(edges), pa.string())
    values = np.asarray(column.cast(pa.float64()).fill_null(np.nan))
    at = np.searchsorted(np.asarray(bounds or [float(edge) for edge in edges]), values, side="right")
    return pc.fill_null(bands.take(pa.array(at, mask=np.isnan(values))), "")


def _band_names(edges: Sequence[str]) -> list[str]:
    return [f"{low}..{high}" for low, high in pairwise(["", *edges, ""])]


def _require_kind(name: str, kind: pa.DataType, *, is_banded: bool) -> None:
    """Raise RecipeError for a column whose values name no groups, or have no bands."""
    if pa.types.is_nested(kind):
        message = f"mix.by: {name} is a column of {kind}; groups are texts, numbers or booleans"
        raise RecipeError(message)
    if is_banded and not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        message = f"mix.bands: {name} is a column of {kind}; bands and factors cut numbers"
        raise RecipeError(message)
