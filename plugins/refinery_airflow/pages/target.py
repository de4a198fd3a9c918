"""Gathers what the what-if page shows of a target: what its tokens ask for, and which looser bound would give them."""

from collections.abc import Sequence
from dataclasses import dataclass

from refinery_study.plan.token_target import TargetEstimate, parse_target, published_tokens, target_estimate

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.whatif import Forecast
from pipeline_tasks.inspect.whatif.looser_bounds import LooserBound, looser_bounds
from pipeline_tasks.publish.logs.version_log import Version

TARGET = "target_tokens"
"""Name of the field of the tokens that a person wants."""

SLIDER = 4
"""The end of the target's slider, as a multiple of the tokens that are published."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The target as typed, "" for none, with its estimate, or the message of why there is none.

    `slider` is the largest value of the slider, 0 for none. `looser` are bounds that give more tokens from what has
    landed: those that alone give the target, else the one that gives the most; none if the target is published.
    """

    written: str
    slider: int
    message: str = ""
    estimate: TargetEstimate | None = None
    looser: Sequence[LooserBound] = ()

    @property
    def kind(self) -> str:
        """The kind of its field in HTML: what is no number stays as it was typed."""
        try:
            parse_target(self.written or "1")
        except RecipeError:
            return "text"
        return "number"


def goal_of(
    root: str, version: Version, written: str, forecast: Forecast, changes: Sequence[str], language: str, most: int
) -> Goal:
    """Return the goal of a page, for the bounds that the forecast is of; `most` rows are read for the looser bounds."""
    slider = SLIDER * published_tokens(root, version.recipe)
    now, then = forecast.characters
    if not written:
        return Goal(written, slider)
    try:
        tokens = parse_target(written)
        if not then:
            return Goal(written, slider, "These bounds keep nothing, so no crawl gives these tokens.")
        estimate = target_estimate(root, version, tokens, then / now if now else 1.0)
    except RecipeError as error:
        return Goal(written, slider, str(error))
    if not now or not estimate.published or estimate.reached >= tokens:
        return Goal(written, slider, estimate=estimate)
    looser = looser_bounds(root, version, changes, tokens / estimate.published, language, most)
    return Goal(written, slider, estimate=estimate, looser=_shown(looser))


def _shown(looser: Sequence[LooserBound]) -> Sequence[LooserBound]:
    enough = [bound for bound in looser if bound.then is not None]
    return enough or sorted(looser, key=lambda bound: -bound.characters)[:1]
