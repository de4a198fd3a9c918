"""Judges a stage's manifest against its suites of expectations: pass, warn, or refuse."""

import json
import logging
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.gate.facts import compute_facts
from pipeline_tasks.gate.subject import Facts
from pipeline_tasks.manifest import canonical, digest_of, stage_prefix
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest

EXPECTATIONS = Path(__file__).parents[2] / "expectations"
"""Suites in Great Expectations' own JSON: `every_stage`, and one named like each stage."""

EVERY = "every_stage"

OPEN = ("reason_share.", "language_share.", "language_retention.")
"""Facts that are there for whatever reasons and languages a snapshot has; a bound on an absent one is not judged."""

LIMITS = ("min_value", "max_value")
SEVERITIES = ("critical", "warning")

Bounds = Mapping[str, Any]
"""A recipe's `gates: <stage>:`: fact -> changed bounds, e.g. `{"retention": {"min_value": 0.1}}`.

They (`min_value`, `max_value`, null for no limit) replace those of every expectation of that fact; under
`critical:` or `warning:` only those of that severity. A fact that the suites do not bound becomes an
expectation of its own, critical unless it says otherwise. `needs:` replaces the suites' own.
"""

Outcome = Literal["pass", "warn", "refuse"]

_GX = threading.Lock()  # Great Expectations keeps its current context in a module


@dataclass(frozen=True, slots=True)
class Failure:
    """One expectation that did not hold: what was observed and what was allowed, as numbers only."""

    expectation: str
    column: str
    observed: float | None
    bound: Mapping[str, Any]
    severity: str
    why: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate decided about one manifest, and the facts that it looked at.

    `path` and `docs` are where this verdict and its Data Docs page lie, relative to the root. `skipped` names
    expectations that were not looked at and why (too few rows, nothing to compare with).
    """

    stage: str
    fingerprint: str
    manifest: str
    previous: str
    outcome: Outcome
    override: str
    failures: tuple[Failure, ...]
    evaluated: int
    skipped: tuple[str, ...]
    facts: Facts
    path: str
    docs: str


def judge(
    root: str, manifest_path: str, previous_path: str = "", bounds: Bounds | None = None, override: str = ""
) -> Verdict:
    """Judge a committed manifest by `every_stage` and its stage's own suite, and store the verdict beside it.

    `previous_path` is the manifest of the same stage in the last published snapshot. `override` is a person's
    reason to let refused data pass: a refusal becomes a warning that carries it. The same suites,
    bounds, previous manifest and override give the verdict that is already stored.
    """
    made = read_manifest(root, manifest_path)
    expectations = load_suite(EVERY) + load_suite(made.stage)
    name = digest_of([expectations, bounds or {}, previous_path, override])
    place = f"{stage_prefix(made.stage, made.fingerprint)}/gate/{name}"
    store = storage.connect(root)
    if store.size(f"{place}/verdict.json") is not None:
        return read_verdict(root, f"{place}/verdict.json")
    previous = read_manifest(root, previous_path) if previous_path else None
    facts = compute_facts(root, made, previous)
    evaluated, skipped = _chosen(_bounded(expectations, bounds or {}, facts), facts)
    results, page = _validate(made.stage, made.fingerprint, facts, evaluated)
    failures = tuple(_failure(one, facts) for one, held in zip(evaluated, results, strict=True) if not held)
    verdict = Verdict(
        stage=made.stage,
        fingerprint=made.fingerprint,
        manifest=manifest_path,
        previous=previous_path,
        outcome=_outcome(failures, override),
        override=override,
        failures=failures,
        evaluated=len(evaluated),
        skipped=skipped,
        facts={key: None if value is None else round(value, 6) for key, value in sorted(facts.items())},
        path=f"{place}/verdict.json",
        docs=f"{place}/docs/index.html",
    )
    store.create(verdict.docs, page)
    storage.commit(store, verdict.path, canonical(verdict) + b"\n")
    return verdict


def read_verdict(root: str, path: str) -> Verdict:
    """Load a stored verdict; RecipeError when there is none, ContractError when it is damaged."""
    try:
        raw = json.loads(storage.connect(root).read(path))
        raw["failures"] = tuple(Failure(**one) for one in raw["failures"])
        raw["skipped"] = tuple(raw["skipped"])
        return Verdict(**raw)
    except FileNotFoundError as error:
        message = f"{root}/{path}: no such verdict; judge that manifest first, or correct the path"
        raise RecipeError(message) from error
    except (ValueError, TypeError, KeyError) as error:
        message = f"{root}/{path} is not a verdict ({error}); remove it and judge again"
        raise ContractError(message) from error


def _outcome(failures: Iterable[Failure], override: str) -> Outcome:
    severities = {one.severity for one in failures}
    if "critical" in severities and not override:
        return "refuse"
    return "warn" if severities & {"critical", "warning"} else "pass"


def _failure(expectation: Mapping[str, Any], facts: Facts) -> Failure:
    kwargs = {key: value for key, value in expectation["kwargs"].items() if value is not None}
    column = str(kwargs.pop("column"))
    observed = facts[column]
    return Failure(
        expectation=expectation["type"],
        column=column,
        observed=None if observed is None else round(observed, 6),
        bound=kwargs,
        severity=expectation["severity"],
        why=expectation["notes"],
    )


# --- Suites are data ------------------------------------------------------------------------------------------


def load_suite(name: str) -> list[dict[str, Any]]:
    """Return a suite's expectations, each with type, kwargs, severity, notes (why) and `needs`.

    `needs` (fact -> least value, from the expectation's meta or else the suite's) says when an expectation can be
    judged: shares of a dozen rows say nothing, so distributions need 100 rows unless a suite says otherwise.
    """
    path = EXPECTATIONS / f"{name}.json"
    try:
        suite = json.loads(path.read_text(encoding="utf-8"))
        needs = suite.get("meta", {}).get("needs", {})
        return [_expectation(one, needs) for one in suite["expectations"]]
    except (OSError, ValueError, KeyError) as error:
        message = f"{path} is not a suite of expectations ({error}); restore it from the repository"
        raise RecipeError(message) from error


def _expectation(raw: Mapping[str, Any], needs: Mapping[str, float]) -> dict[str, Any]:
    return {
        "type": raw["type"],
        "kwargs": dict(raw["kwargs"]),
        "severity": raw["severity"],
        "notes": raw["notes"],
        "needs": raw.get("meta", {}).get("needs", needs),
    }


def _bounded(expectations: Iterable[Mapping[str, Any]], bounds: Bounds, facts: Facts) -> list[dict[str, Any]]:
    """Return the expectations with a recipe's bounds laid over theirs, and new ones for facts that had none."""
    needs = bounds.get("needs")
    given = {fact: _checked(fact, changed) for fact, changed in bounds.items() if fact != "needs"}
    laid = []
    for one in expectations:
        changed = _changed(given.get(one["kwargs"]["column"], {}), one["severity"])
        kwargs = {**one["kwargs"], **changed}
        laid.append({**one, "kwargs": kwargs, "needs": one["needs"] if needs is None else needs})
    old = {one["kwargs"]["column"] for one in laid}
    for fact in given.keys() - old:
        _known(fact, old | facts.keys())
    new = [(fact, changed) for fact, changed in sorted(given.items()) if fact not in old]
    return laid + [_added(fact, _changed(changed, one), one) for fact, changed in new for one in _severities(changed)]


def _changed(changed: Mapping[str, Any], severity: str) -> dict[str, Any]:
    flat = {key: value for key, value in changed.items() if key not in SEVERITIES}
    return {**flat, **changed.get(severity, {})}


def _severities(changed: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(one for one in SEVERITIES if one in changed) or ("critical",)


def _added(fact: str, limits: Mapping[str, Any], severity: str) -> dict[str, Any]:
    return {
        "type": "expect_column_max_to_be_between",
        "kwargs": {"column": fact, **limits},
        "severity": severity,
        "notes": "Asked for by the recipe.",
        "needs": {},
    }


def _checked(fact: str, changed: object, known: tuple[str, ...] = (*LIMITS, *SEVERITIES)) -> Mapping[str, Any]:
    """Return a fact's changed bounds; RecipeError unless they are limits, or limits by severity."""
    if not isinstance(changed, Mapping) or not changed.keys() <= set(known):
        message = f"gates: {fact} must be a mapping of {', '.join(known)}, not {changed!r}"
        raise RecipeError(message)
    for key, value in changed.items():
        if key in SEVERITIES:
            _checked(f"{fact}: {key}", value, LIMITS)
        elif not isinstance(value, int | float | None):
            message = f"gates: {fact}: {key} must be a number (or null for no limit), not {value!r}"
            raise RecipeError(message)
    return changed


def _known(fact: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if fact not in names and not fact.startswith(OPEN):
        near = get_close_matches(fact, names, n=1, cutoff=0)
        message = f"gates: there is no fact {fact!r} to bound; the nearest is {near[0]!r}"
        raise RecipeError(message)


def _chosen(expectations: Iterable[dict[str, Any]], facts: Facts) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Split expectations into those that can be judged and the reasons why the others cannot."""
    evaluated, skipped = [], []
    for one in expectations:
        column = one["kwargs"]["column"]
        lacking = [f"{fact} >= {least}" for fact, least in one["needs"].items() if (facts.get(fact) or 0) < least]
        if facts.get(column) is None:
            skipped.append(f"{column}: nothing was measured")
        elif lacking:
            skipped.append(f"{column}: needs {', '.join(lacking)}")
        else:
            evaluated.append(one)
    return evaluated, tuple(skipped)


# --- Great Expectations ---------------------------------------------------------------------------------------


def _validate(stage: str, run: str, facts: Facts, expectations: list[dict[str, Any]]) -> tuple[list[bool], bytes]:
    """Return which expectations hold for the one-row frame of facts, and their Data Docs page."""
    with _GX, tempfile.TemporaryDirectory(prefix="refinery-gate-") as site:
        gx = _great_expectations()
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False, "metric_calculations": False}
        context.add_data_docs_site("refinery", _site(site))
        asset = context.data_sources.add_pandas("facts").add_dataframe_asset(stage)
        plain = [_plain(*one) for one in enumerate(expectations)]
        suite = context.suites.add(gx.ExpectationSuite(name=stage, expectations=plain))
        definition = context.validation_definitions.add(
            gx.ValidationDefinition(name=stage, data=asset.add_batch_definition_whole_dataframe("all"), suite=suite)
        )
        checkpoint = context.checkpoints.add(
            gx.Checkpoint(
                name=stage,
                validation_definitions=[definition],
                actions=[gx.checkpoint.UpdateDataDocsAction(name="docs", site_names=["refinery"])],
                result_format={"result_format": "BASIC", "partial_unexpected_count": 0},
            )
        )
        ran = checkpoint.run(batch_parameters={"dataframe": _frame(facts)}, run_id=gx.RunIdentifier(run_name=run))
        (validated,) = ran.run_results.values()
        results = sorted(validated.results, key=lambda one: int(one.expectation_config.meta["rank"]))
        return [_held(one, stage) for one in results], _page(Path(site), stage)


@lru_cache(maxsize=1)
def _great_expectations() -> Any:  # noqa: ANN401 -- imported at run time: it takes eight seconds
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations._docs_decorators").setLevel(logging.WARNING)  # 200 lines at import
    gx = import_module("great_expectations")
    for noisy in ("great_expectations", "great_expectations.data_context.types.base"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return gx


def _frame(facts: Facts) -> Any:  # noqa: ANN401 -- pandas.DataFrame
    import pandas as pd

    return pd.DataFrame([facts], dtype="float64")


def _plain(rank: int, expectation: Mapping[str, Any]) -> dict[str, Any]:
    """Return an expectation as Great Expectations reads it; `rank` finds its result again."""
    return {
        "type": expectation["type"],
        "kwargs": {key: value for key, value in expectation["kwargs"].items() if value is not None},
        "severity": expectation["severity"],
        "notes": expectation["notes"],
        "meta": {"rank": rank},
    }


def _held(result: Any, stage: str) -> bool:  # noqa: ANN401 -- ExpectationValidationResult
    if result.exception_info.get("raised_exception"):
        message = (
            f"expectations of {stage}: {result.expectation_config.type} of "
            f"{result.expectation_config.kwargs.get('column')!r} cannot be evaluated "
            f"({str(result.exception_info.get('exception_message'))[:300]}); correct the suite or the recipe's gates"
        )
        raise RecipeError(message)
    return bool(result.success)


def _site(folder: str) -> dict[str, Any]:
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": folder}
    index = {"class_name": "DefaultSiteIndexBuilder"}
    return {"class_name": "SiteBuilder", "store_backend": store, "site_index_builder": index}


UNWANTED = (
    "//script | //link | //style | //img | //nav | //footer | //form | //button | //label"
    " | //a[@data-toggle='collapse'] | //div[contains(@class, 'collapse')] | //div[contains(@class, 'sticky')]"
)
"""What a Data Docs page loads from elsewhere, or cannot do without what it loads."""

HEAD = """<head><meta charset="utf-8"><title>Gate of STAGE</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h4, h5, h6 { margin: 1rem 0 .3rem; } h4 { font-size: 1.4rem; } h5 { font-size: 1.05rem; }
.alert { border-bottom: 1px solid var(--line); margin-top: 1.2rem; }
i { font-style: normal; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .25rem .8rem .25rem 0; }
th { font-weight: 600; font-size: .8rem; opacity: .7; } td:first-child { width: 12rem; } td:last-child { width: 9rem; }
.badge { background: var(--soft); border-radius: .3rem; padding: 0 .35rem; font-variant-numeric: tabular-nums; }
.fa-check-circle::before { content: "holds"; color: #2e7d4f; }
.fa-times::before { content: "fails"; color: #c0392b; font-weight: 600; }
.fa-exclamation-triangle::before { content: "error"; color: #b26a00; }
</style></head>"""
"""The page opens offline, beside the data: its style is its own and nothing may be fetched."""


def _page(site: Path, stage: str) -> bytes:
    """Return the one validation page of a Data Docs site as a file that stands alone."""
    from lxml import html

    (page,) = (site / "validations").rglob("*.html")
    body = html.document_fromstring(page.read_bytes().decode()).body
    for one in body.xpath(UNWANTED):
        one.drop_tree()
    for link in body.xpath("//a[@href]"):
        link.drop_tag()
    for styled in body.xpath("//*[@style]"):
        del styled.attrib["style"]
    inside = html.tostring(body, encoding="unicode")
    return f'<!DOCTYPE html>\n<html lang="en">{HEAD.replace("STAGE", stage)}\n{inside}</html>\n'.encode()
