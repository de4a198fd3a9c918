"""Compares extractors on pages of lists, tables, terms and code, block by block.

    PYTHONPATH=. python benchmarks/structure.py [--peers PYTHON] [--runs R] [--json]

The pages are those of `tests/golden/structure`: documentation, forums, recipes and references in fifteen layouts,
with each block annotated. Recall, precision and F1 count blocks by their letters and digits; `laid out` is the share
of kept blocks that are rows, items, code and lines of their own (`tests/golden/structure/scoring.py`). `blocks` is
shown with `output: markdown`, and trafilatura with its own Markdown. Pages per second are processor time of one
process over all pages, the best of the runs, without decoding; `ratio` is that of `blocks` to the method.

`--peers` names a Python that has readability-lxml, readabilipy, boilerpy3, goose3 or newspaper4k. Those that it can
import are compared as well, each as its documentation shows first.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

METHODS = ("blocks", "resiliparse", "trafilatura", "justext")
PEERS = ("readability-lxml", "readabilipy", "boilerpy3", "goose3", "newspaper4k")


def ours(runs: int) -> dict[str, tuple[list[str], float]]:
    """Return the texts of each method over the pages, and its pages per second."""
    from functools import partial

    import trafilatura

    from pipeline_tasks.text.page import main_text
    from pipeline_tasks.text.page.sandbox_messages import Output
    from tests.golden.structure.pages import pages

    def extracted(html: str, method: str, output: Output = "plain") -> str:
        return main_text.main_text(html, method, output=output).text

    calls: dict[str, Callable[[str], str]] = {name: partial(extracted, method=name) for name in METHODS}
    calls["blocks, markdown"] = partial(extracted, method="blocks", output="markdown")
    calls["trafilatura, markdown"] = lambda html: (
        trafilatura.extract(html, output_format="markdown", include_comments=False) or ""
    )
    htmls = [page.html for page in pages()]
    return {name: timed(call, htmls, runs) for name, call in calls.items()}


def timed(call: Callable[[str], str], htmls: list[str], runs: int) -> tuple[list[str], float]:
    """Return the texts of pages and the pages per second of the best run; a page that raises has no text."""
    best, texts = 0.0, list[str]()
    for _ in range(runs + 1):
        start, texts = time.process_time(), []
        for html in htmls:
            with contextlib.suppress(Exception):
                texts.append(call(html) or "")
                continue
            texts.append("")
        best = max(best, len(htmls) / (time.process_time() - start))
    return texts, best


def peer(name: str) -> Callable[[str], str]:
    """Return the extraction of one peer; ImportError where it is not installed."""
    if name == "readability-lxml":
        from lxml.html import fromstring
        from readability import Document

        return lambda html: str(fromstring(Document(html).summary()).text_content())
    if name == "readabilipy":
        from readabilipy import simple_json_from_html_string

        return lambda html: "\n".join(part["text"] for part in simple_json_from_html_string(html)["plain_text"])
    if name == "boilerpy3":
        from boilerpy3.extractors import ArticleExtractor

        extractor = ArticleExtractor(raise_on_failure=False)
        return lambda html: str(extractor.get_content(html))
    if name == "goose3":
        from goose3 import Goose

        goose = Goose({"enable_image_fetching": False})
        return lambda html: str(goose.extract(raw_html=html).cleaned_text)
    from newspaper import Article

    def parsed(html: str) -> str:
        article = Article("https://example.org/")
        article.download(input_html=html)
        article.parse()
        return str(article.text)

    return parsed


def measure_peers(runs: int) -> None:
    """Print the texts and speeds of the peers that can be imported, as JSON, for the pages on standard input."""
    htmls = json.load(sys.stdin)
    out = {}
    for name in PEERS:
        with contextlib.suppress(ImportError):
            out[name] = timed(peer(name), htmls, runs)
    print(json.dumps(out))


def main() -> None:
    """Print a line for each method; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure-peers", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure_peers:
        measure_peers(options.runs)
        return
    from pipeline_tasks.text.page.normal_form import normalize_text
    from tests.golden.structure.pages import pages
    from tests.golden.structure.scoring import score

    results = ours(options.runs)
    if options.peers:
        call = [str(options.peers), __file__, "--measure-peers", "--runs", str(options.runs)]
        htmls = json.dumps([page.html for page in pages()])
        answer = subprocess.run(call, input=htmls, capture_output=True, text=True, check=True)
        results |= {name: (texts, speed) for name, (texts, speed) in json.loads(answer.stdout).items()}
    figures = {}
    print(f"{'':<24}{'recall':>8}{'precision':>11}{'F1':>8}{'laid out':>10}{'pages/s':>9}{'ratio':>8}")
    for name, (texts, speed) in results.items():
        scored = score(pages(), [normalize_text(text) for text in texts])
        figures[name] = {**scored._asdict(), "pages_s": speed}
        ratio = results["blocks"][1] / speed
        print(
            f"{name:<24}{scored.recall:>8.3f}{scored.precision:>11.3f}{scored.f1:>8.3f}{scored.laid_out:>10.3f}"
            f"{speed:>9.0f}{ratio:>8.2f}"
        )
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
