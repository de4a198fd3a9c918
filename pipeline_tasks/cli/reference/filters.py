"""The page of filters: each profile's source, rules, signals and limits."""

import importlib
from collections.abc import Iterator
from dataclasses import fields

from pipeline_tasks.cli.reference.markdown import default, docstring, first_sentence, generated_note, names, table
from pipeline_tasks.filters import Filter, own_filters
from pipeline_tasks.stages.filter_quality import signals_column

HEAD = """
Each profile of [filter_quality](stages.md#filter_quality) is one file of `pipeline_tasks/filters/`. A row is rejected
when a signal is below a minimum or above a maximum. A recipe overrides limits under the name of the profile. The
signals are stored with every row in the column that is named here. [profiles.md](profiles.md) compares the profiles,
and lists where one differs from its source.
"""


def filters_page() -> str:
    """Return the page as Markdown."""
    filters = own_filters()
    contents = table(
        ("profile", "what it does"), ([f"[{name}](#{name})", _sentence(card)] for name, card in filters.items())
    )
    head = ["# Filters\n", generated_note("the modules of `pipeline_tasks/filters/`"), HEAD.strip() + "\n", *contents]
    return "\n".join([*head, *(line for card in filters.values() for line in _section(card))]) + "\n"


def _module(card: Filter) -> object:
    return importlib.import_module(f"pipeline_tasks.filters.{card.name}")


def _sentence(card: Filter) -> str:
    return first_sentence(_module(card))


def _section(card: Filter) -> Iterator[str]:
    limits = {field.name: field for field in fields(card.limits)}
    bounded = {rule.limit for rule in card.rules}
    yield f"\n## {card.name}\n"
    yield docstring(_module(card)) + "\n"
    yield f"- column: `{signals_column(card.name)}`"
    yield f"- signals: {names(card.signals)}"
    if card.cuts:
        yield f"- spans of `edit_spans`: {names(f'{card.name}:{rule}' for rule in card.cuts.rules)}"
    yield ""
    yield from table(
        ("reason", "signal", "bound", "limit", "default"),
        ([f"`{card.reason(rule)}`", f"`{rule.signal}`", rule.side, f"`{rule.limit}`", default(limits[rule.limit])]
         for rule in card.rules),
    )  # fmt: skip
    others = [field for name, field in limits.items() if name not in bounded]
    if others:
        yield ""
        yield from table(("other limit", "default"), ([f"`{field.name}`", default(field)] for field in others))
    yield "\n" + docstring(card.limits)
