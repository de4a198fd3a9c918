"""Writes what a trained extractor chooses on held-out sites, as people read it."""

from collections.abc import Iterator, Mapping
from typing import Any


def report_lines(card: Mapping[str, Any], output: str, size: int) -> Iterator[str]:
    """Yield the facts of a trained model, and its figures where sites were held out."""
    trained = card["trained_on"]
    yield (
        f"{output}: {card['trees']} trees on {trained['blocks']:,} blocks of {trained['pages']:,} pages of "
        f"{trained['sites']:,} sites, {size:,} bytes"
    )
    report = card.get("report")
    if report is None:
        return
    yield f"pages without marked text: {report['without_text']}; not learned from: {report['left_out']} more"
    yield f"{'':<24}{'pages':>7}{'F1':>8}{'P':>8}{'R':>8}"
    yield _line("held-out sites", report["held_out"])
    yield _line("  the labels themselves", report["ceiling"])
    for title in ("by_type", "by_language"):
        yield from (_line(f"  {name or '?'}", figures) for name, figures in report[title].items())


def _line(name: str, figures: Mapping[str, Any]) -> str:
    numbers = "".join(f"{figures[field]:8.4f}" for field in ("f1", "precision", "recall"))
    return f"{name:<24}{figures['pages']:>7,}{numbers}"
