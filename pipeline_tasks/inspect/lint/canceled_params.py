"""Finds params of a recipe that another param, or an absent one, turns off; and bounds that judge nothing."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.filters import packs
from pipeline_tasks.gate.suites import LIMITS, SEVERITIES
from pipeline_tasks.recipe import Recipe, stage_card
from pipeline_tasks.run.recipe_faults import Finding
from pipeline_tasks.stages import filter_quality, score_quality, scrub_pii
from pipeline_tasks.text.words.language_codes import parse_language


class Canceled(NamedTuple):
    """A param without effect: its name, `why`, and the `remedy` besides removing it."""

    param: str
    why: str
    remedy: str


def canceled_params(recipe: Recipe) -> Iterator[Finding]:
    """Yield a note for each param that the recipe writes and that has no effect there."""
    for step in recipe.steps:
        params = bind(stage_card(step.stage), step.params)
        for param, why, remedy in RULES.get(step.stage, _none)(params):
            if param.partition(".")[0] in {**step.params, **step.params.get("limits", {})}:
                message = f"`{param}` has no effect: {why}; {remedy}, or remove it"
                yield Finding(fault=False, where=step.stage, message=message)


def _none(_: Any) -> Iterator[Canceled]:  # noqa: ANN401 -- any stage's Params, as below
    return iter(())


def _extract(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    methods = {params.method, *params.fallback}
    if "justext" not in methods:
        yield Canceled("language", "it names jusText's stop words, and no method is justext", "add it to `fallback`")
    if params.fallback and set(params.fallback) == {params.method}:
        yield Canceled("fallback", f"it names {params.method} alone, which `method` is", "name another method")


def _filter_url(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    lists = (params.domains, params.urls, params.hard_words, params.soft_words, params.subwords)
    if not any(lists):
        return  # `idle` says so
    if not params.soft_words:
        yield Canceled("soft_limit", "it counts `soft_words`, and there are none", "name their list")
    if not (params.domains or params.urls):
        yield Canceled("matching", "it compares `domains` and `urls`, and there are none", "name a list of them")


def _filter_language(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    kept = {parse_language(code).language for code in params.keep}
    unwanted = sorted(code for code in params.thresholds if parse_language(code).language not in kept)
    if kept and unwanted:
        named = ", ".join(unwanted)
        yield Canceled("thresholds", f"{named}: `keep` does not have them", "add them to `keep`")
    if params.unit == "text":
        yield Canceled("min_foreign", "`unit: text` finds no paragraphs", "write `unit: paragraph`")
        if len(params.windows) == 1:
            why = "one window of a text has one language"
            yield Canceled("mixed", why, "write `unit: paragraph`, or several `windows`")


def _filter_quality(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    for profile in params.limits:
        if profile not in params.profiles:
            yield Canceled(profile, "`profiles` does not name it, so its rules judge nothing", "add it to `profiles`")
    cards = [filter_quality.FILTERS[name] for name in params.profiles]
    if params.edit and not any(card.cuts for card in cards):
        cutting = ", ".join(name for name, card in filter_quality.FILTERS.items() if card.cuts)
        yield Canceled("edit", f"no profile removes lines; {cutting} do", "name one of them")
    if params.words not in ("split", "spacy") and not WORDED & {*params.profiles}:
        yield Canceled("words", f"only {', '.join(sorted(WORDED))} count words by it", "name one of them")
    if params.packs != packs.NONE and not _has_entry(params):
        yield Canceled("packs", "it has no bound and no stop words of a profile that is named", "write `packs: none`")


WORDED = frozenset({"fineweb", "gopher_quality", "gopher_repetition"})
"""Profiles that count words by the param `words`; with `spacy`, c4 counts sentences by it, too."""


def _has_entry(params: Any) -> bool:  # noqa: ANN401
    """Return whether packs say something of a profile that judges; True for packs that cannot be read, a fault."""
    try:
        loaded = packs.load(params.packs, filter_quality.FILTERS)
    except (OSError, RefineryError):
        return True
    cards = [filter_quality.FILTERS[name] for name in params.profiles]
    has_words = any(card.stop_words for card in cards) and any(pack.stop_words for pack in loaded.values())
    return has_words or any(name in pack.bounds for pack in loaded.values() for name in params.profiles)


def _cut_templates(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    if not params.most:
        for name in ("documents", "depth"):
            yield Canceled(name, "`most: 0` lets no text lose a line", "raise `most`")


def _dedup_minhash(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    if not params.threshold:
        yield Canceled("similarity", "`threshold: 0` verifies no pair", "raise `threshold`")
    if "quality" not in params.policy:
        yield Canceled("quality", "`policy` does not name `quality`", "add it to `policy`")
    behind = params.policy[params.policy.index("lowest_id") + 1 :] if "lowest_id" in params.policy else ()
    if behind:
        yield Canceled("policy", f"{', '.join(behind)}: `lowest_id` before it leaves no tie", "put `lowest_id` last")


def _score_quality(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    bounded = {name for name, weight in (*params.weights.items(), *params.bounds.items()) if weight}
    for name in sorted(name for name, least in params.minima.items() if least and not params.has_source(name)):
        yield Canceled(f"minima.{name}", "no model gives it", "name one in `classifiers`")
    if score_quality.PERPLEXITY not in bounded:
        for name in ("language_models", "shipped_models"):
            yield Canceled(name, "`perplexity` has no weight and no minimum", "give it one")


def _filter_toxicity(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    if params.action == "annotate":
        for name in ("bounds", "fewest", "most"):
            yield Canceled(name, "`action: annotate` rejects no document", "write another `action`")
    elif not params.bounds:
        yield Canceled("fewest", "`bounds` names no label", "name labels in `bounds`")


def _scrub_pii(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    actions = set(scrub_pii.actions_of(params).values())
    if actions == {"drop"}:
        yield Canceled("max_spans", "`drop` rejects a document for one finding", "give a kind another action")
    if not params.model:
        yield Canceled("labels", "`model` names no pipeline", "name one in `model`")
    if "pseudonymize" not in actions:
        yield Canceled(
            "key_name", "no kind is pseudonymized", "write `action: pseudonymize`, or name a kind in `kinds`"
        )


def _decontaminate(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    if not params.benchmarks:
        return  # `idle` says so
    if params.method == "ngram":
        for name in ("score", "misses"):
            yield Canceled(name, "`method: ngram` finds no edited texts", "write `method: both`")
    if params.method == "sampled":
        for name in ("ngram", "overlap"):
            yield Canceled(name, "`method: sampled` counts no runs of words", "write `method: both`")


def _mix(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    shares = params.weights or params.tokens
    asked = shares or params.epochs or params.temperature
    if not shares:
        yield Canceled("unlisted", "`weights` and `tokens` name no group, so that every one is kept", "name groups")
    if not shares and not params.temperature:
        yield Canceled("max_epochs", "nothing asks for more of a group than it has", "name groups in `weights`")
    if not (asked or params.quality):
        yield Canceled("bands", "no group of them has a share", "name groups in `weights`, `tokens` or `epochs`")
    if not (asked or params.budget_tokens or params.factors or params.quality):
        yield Canceled("seed", "every document is used once, and none is drawn", "name shares, or a budget")
    if params.temperature == 1:
        yield Canceled("temperature", "1 weights groups by what they have", "write a larger one")


def _pack(params: Any) -> Iterator[Canceled]:  # noqa: ANN401
    if params.method == "concat" and params.tail == "drop":
        yield Canceled("pad_id", "`tail: drop` leaves no sequence to pad", "write another `tail`")


RULES: Mapping[str, Callable[[Any], Iterator[Canceled]]] = {
    "extract": _extract,
    "filter_url": _filter_url,
    "filter_language": _filter_language,
    "filter_quality": _filter_quality,
    "cut_templates": _cut_templates,
    "dedup_minhash": _dedup_minhash,
    "score_quality": _score_quality,
    "filter_toxicity": _filter_toxicity,
    "scrub_pii": _scrub_pii,
    "decontaminate": _decontaminate,
    "mix": _mix,
    "pack": _pack,
}


# --- Bounds on facts that may be absent -------------------------------------------------------------------------------

LANGUAGE_FACTS = ("language_share.", "language_retention.", "score_mean.", "language_signal_p50.")
"""Facts that exist of the languages of a snapshot alone."""


def absent_bounds(recipe: Recipe) -> Iterator[Finding]:
    """Yield a note for each bound on a fact that a snapshot may lack: it is skipped then, and not broken."""
    kept = {code for step in recipe.steps for code in _kept_languages(step.stage, step.params)}
    for gate, bounds in recipe.gates.items():
        for fact, change in bounds.items():
            if message := _absent(fact, change, kept):
                yield Finding(fault=False, where=f"gates.{gate}", message=message)


def _kept_languages(stage: str, params: Mapping[str, Any]) -> list[str]:
    if stage != "filter_language":
        return []
    return [parse_language(code).language for code in bind(stage_card(stage), params).keep]


def _absent(fact: str, change: Mapping[str, Any], kept: set[str]) -> str:
    """Return what a bound means where its fact is absent, "" if it never is or that does no harm."""
    kind = next((kind for kind in LANGUAGE_FACTS if fact.startswith(kind)), "")
    code = fact.rpartition(".")[2]
    if not kind or code == "*":
        return ""
    if kept and code not in kept:
        return (
            f"`{fact}` is never judged: `keep` of `filter_language` does not have {code}; add it, or remove the bound"
        )
    if kind == "language_share." and _has_minimum(change):
        return (
            f"`{fact}` is skipped where no document is in {code}: its minimum lets a snapshot without any pass; write "
            f"`{fact}: {{trailing: {{severity: critical}}}}`, which counts an absent language as a share of 0"
        )
    return ""


def _has_minimum(change: Mapping[str, Any]) -> bool:
    return any(part.get(LIMITS[0]) is not None for part in (change, *(change.get(name, {}) for name in SEVERITIES)))
