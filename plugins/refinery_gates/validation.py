"""Validates facts with Great Expectations, and turns its Data Docs page into one self-contained file."""

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from html import escape
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.judging import Comparison, Numbers, Render
from pipeline_tasks.gate.suites import Expectation
from refinery_gates.docs_page import with_bounds

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult
    from great_expectations.core.batch_definition import BatchDefinition

ONE_AT_A_TIME = threading.Lock()
"""Great Expectations keeps its current context in a module, and a batch in its data source."""


def judge() -> Comparison | None:
    """Return the judge of the seam `refinery.judges`; None where Great Expectations is not installed."""
    return _compared if find_spec("great_expectations") else None


def _compared(stage: str, run: str, facts: Numbers, expectations: list[Expectation]) -> tuple[list[bool], Render]:
    results, page = validate(stage, run, facts, expectations)
    return results, partial(with_bounds, page)


def validate(stage: str, run: str, facts: Numbers, expectations: list[Expectation]) -> tuple[list[bool], str]:
    """Return whether each expectation is met by the facts, and the Data Docs page of the validation.

    RecipeError when an expectation cannot be evaluated.
    """
    with ONE_AT_A_TIME:
        result = _validated(stage, run, facts, expectations)
        page = rendered(result)
    ordered = sorted(result.results, key=lambda each: int(each.expectation_config.meta["rank"]))
    return [_is_met(each, stage) for each in ordered], _page(page, stage)


def _validated(
    stage: str, run: str, facts: Numbers, expectations: list[Expectation]
) -> "ExpectationSuiteValidationResult":
    """Validate a one-row frame of facts.

    A validation definition with a run of it would store both, and the suite, in the context: half of the time.
    """
    import pandas as pd

    gx = great_expectations()
    configured = [_configured(rank, expectation) for rank, expectation in enumerate(expectations)]
    suite = gx.ExpectationSuite(name=stage, expectations=configured)
    batch = batches().get_batch({"dataframe": pd.DataFrame([facts], dtype="float64")})
    with configurations_kept():
        result = batch.validate(suite, result_format={"result_format": "BASIC", "partial_unexpected_count": 0})
    result.meta["run_id"] = gx.RunIdentifier(run_name=run)
    return result


@contextmanager
def configurations_kept() -> Iterator[None]:
    """Let each expectation make its configuration once: a validation asks for it 52 times, a third of a gate's time."""
    owner = import_module("great_expectations.expectations.expectation").Expectation
    plain, kept = owner.configuration, {}

    def configuration(expectation: object) -> object:
        if id(expectation) not in kept:
            kept[id(expectation)] = expectation, plain.fget(expectation)  # held, so that its id stays its own
        return kept[id(expectation)][1]

    owner.configuration = property(configuration)
    try:
        yield
    finally:
        owner.configuration = plain


@lru_cache(maxsize=1)
def batches() -> "BatchDefinition":
    """Return what makes a batch of a frame, in one context for all validations of this process."""
    context = great_expectations().get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_pandas("facts").add_dataframe_asset("facts")
    return asset.add_batch_definition_whole_dataframe("all")


def rendered(result: "ExpectationSuiteValidationResult") -> str:
    """Return the Data Docs page of a validation.

    A checkpoint that updates a site would compile all templates for each page, render an index, and copy fonts and
    styles, which is two thirds of its time.
    """
    return _renderer()(_as_stored(result))


def _as_stored(result: "ExpectationSuiteValidationResult") -> "ExpectationSuiteValidationResult":
    """Return a result as Great Expectations would read it from a store: its renderer fails at numbers of numpy."""
    results = import_module("great_expectations.core.expectation_validation_result")
    return results.ExpectationSuiteValidationResultSchema().loads(json.dumps(result.to_json_dict()))


@lru_cache(maxsize=1)
def _renderer() -> Callable[["ExpectationSuiteValidationResult"], str]:
    """Return what makes Data Docs pages of results as stored; it keeps its compiled templates."""
    renderer = import_module("great_expectations.render.renderer").ValidationResultsPageRenderer()
    view = import_module("great_expectations.render.view").DefaultJinjaPageView()
    return lambda result: str(view.render(renderer.render(result)))


@lru_cache(maxsize=1)
def great_expectations() -> ModuleType:
    """Return the module, which is imported when it is needed: it takes eight seconds."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations._docs_decorators").setLevel(logging.WARNING)  # 200 lines at import
    logging.getLogger("refinery").info("Great Expectations starts")
    gx = import_module("great_expectations")
    for noisy in ("great_expectations", "great_expectations.data_context.types.base"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return gx


def _configured(rank: int, expectation: Expectation) -> dict[str, Any]:
    """Return an expectation as Great Expectations reads it; `rank` identifies its result."""
    return {
        "type": expectation["type"],
        "kwargs": {key: value for key, value in expectation["kwargs"].items() if value is not None},
        "severity": expectation["severity"],
        "notes": expectation["notes"],
        "meta": {"rank": rank},
    }


def _is_met(result: "ExpectationValidationResult", stage: str) -> bool:
    if result.exception_info.get("raised_exception"):
        message = (
            f"expectations of {stage}: {result.expectation_config.type} of "
            f"{result.expectation_config.kwargs.get('column')!r} cannot be evaluated "
            f"({str(result.exception_info.get('exception_message'))[:300]}); correct the suite or the recipe's gates"
        )
        raise RecipeError(message)
    return bool(result.success)


UNWANTED = (
    "//script | //link | //style | //img | //nav | //footer | //form | //button | //label"
    " | //a[@data-toggle='collapse'] | //div[contains(@class, 'collapse')] | //div[contains(@class, 'sticky')]"
)
"""Parts of a Data Docs page that load a file from elsewhere, or need such a file to work."""

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
.bounds td { vertical-align: top; width: auto !important; }
.bounds td:nth-child(3) { min-width: 12rem; overflow-wrap: anywhere; } .bounds td:last-child { min-width: 20rem; }
pre { white-space: pre-wrap; font: inherit; }
.badge { background: var(--soft); border-radius: .3rem; padding: 0 .35rem; font-variant-numeric: tabular-nums; }
.fa-check-circle::before { content: "holds"; color: #2e7d4f; }
.fa-times::before { content: "fails"; color: #c0392b; font-weight: 600; }
.fa-exclamation-triangle::before { content: "error"; color: #b26a00; }
</style></head>"""
"""The page opens offline: it has its own style, and may fetch nothing."""


def _page(page: str, stage: str) -> str:
    """Return a Data Docs page as a file that needs no other file."""
    return f'<!DOCTYPE html>\n<html lang="en">{HEAD.replace("STAGE", escape(stage))}\n{content(page)}</html>\n'


def content(page: str) -> str:
    """Return the body of a Data Docs page without what needs another file."""
    from lxml import html

    body = html.document_fromstring(page).body
    for element in body.xpath(UNWANTED):
        element.drop_tree()
    for link in body.xpath("//a[@href]"):
        link.drop_tag()
    for styled in body.xpath("//*[@style]"):
        del styled.attrib["style"]
    return str(html.tostring(body, encoding="unicode"))
