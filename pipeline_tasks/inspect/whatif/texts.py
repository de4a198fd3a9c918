"""Predicts how much text other values of a stage's dials would give: params that reject nothing by themselves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import known_card, stage_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Dial
from pipeline_tasks.inspect.whatif import ALL, sampled_shards
from pipeline_tasks.nearest import near
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import read_manifest, read_shards

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class TextForecast:
    """The effect of a dial on the texts of rows that its stage keeps: words (now, then), and rows that gain and lose.

    `rows` are those that say it. All counts are scaled from a sample of large stages.
    """

    key: str
    dial: tuple[float, float]
    rows: int
    words: tuple[int, int]
    gaining: int
    losing: int


def is_dial(change: str, version: Version) -> bool:
    """Return whether a change, as `--set` writes it, is of a dial of a stage of a version, by its default params."""
    stage, dot, param = change.partition("=")[0].strip().partition(".")
    card = known_card(stage) if dot and stage in version.manifests else None
    return (
        card is not None and card.dials is not None and any(each.param == param for each in card.dials(card.params()))
    )


def text_forecasts(root: str, version: Version, changes: Sequence[str], most: int = ALL) -> list[TextForecast]:
    """Return the effect of each change of a dial, written `stage.param=value`.

    Of large stages about `most` rows are read. RecipeError for a stage that the version does not have, and for a value
    that a recipe could not have.
    """
    return [_forecast(root, version, *_parts(change), most) for change in changes]


def _parts(change: str) -> tuple[str, str, str]:
    key, _, written = change.partition("=")
    stage, _, param = key.strip().partition(".")
    return stage, param, written.strip()


def _forecast(root: str, version: Version, stage: str, param: str, written: str, most: int) -> TextForecast:
    dial, then = _dial(root, version, stage, param, written)
    manifest = read_manifest(root, version.manifests[stage])
    shards, weight = sampled_shards(manifest.shards, most / max(manifest.rows, 1))
    rows = has = would = gaining = losing = 0
    for batch in read_shards(root, shards, dial.columns):
        before, after = dial.words(batch, then)
        rows += len(before) - before.null_count
        has += pc.sum(before).as_py() or 0
        would += pc.sum(after).as_py() or 0
        gaining += pc.sum(pc.cast(pc.greater(after, before), "int64")).as_py() or 0
        losing += pc.sum(pc.cast(pc.less(after, before), "int64")).as_py() or 0
    scaled = [round(count * weight) for count in (rows, has, would, gaining, losing)]
    return TextForecast(f"{stage}.{param}", (dial.now, then), scaled[0], (scaled[1], scaled[2]), scaled[3], scaled[4])


def _dial(root: str, version: Version, stage: str, param: str, written: str) -> tuple[Dial, float]:
    """Return a dial of a version's stage, and the other value; RecipeError for none, and for no value of it."""
    if stage not in version.manifests:
        message = f"--set {stage}.{param}: version {version.number} of recipe {version.recipe} has no {stage}"
        raise RecipeError(message)
    card, manifest = stage_card(stage), read_manifest(root, version.manifests[stage])
    params = bind(card, manifest.params, f"--set {stage}")
    dials = {each.param: each for each in (card.dials(params) if card.dials else ())}
    if param not in dials:
        meant = ", ".join(near(param, dials, 3)) or "none"
        message = f"--set {stage}.{param}: by its params nothing is stored that says it; what is said: {meant}"
        raise RecipeError(message)
    try:
        then = float(written)
    except ValueError as error:
        message = f"--set {stage}.{param}={written}: the value must be a number"
        raise RecipeError(message) from error
    bind(card, {**manifest.params, param: then}, f"--set {stage}")
    return dials[param], then


def text_lines(forecasts: Sequence[TextForecast]) -> Iterator[str]:
    """Yield the forecasts of texts for a person."""
    for forecast in forecasts:
        (now, then), (has, would) = forecast.dial, forecast.words
        share = f"{(would - has) / has:+.1%}" if has else "0 %"
        yield f"{forecast.key}: {now:g} -> {then:g}"
        yield (
            f"  the texts of {forecast.rows:,} documents have {has:,} words, about {would:,} would be ({share}): "
            f"{forecast.gaining:,} documents gain, {forecast.losing:,} lose"
        )
    if forecasts:
        yield "  which of them other bounds then reject, a trial says: `refinery run --sample`"
