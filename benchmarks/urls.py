"""Compares the URL filter with datatrove's over the same URLs and lists: datatrove's own, 4.6 million hosts.

    python benchmarks/urls.py [--input WET_FOLDER] [--urls N] [--json]

URLs are those of the crawl's documents, and others built from listed hosts, URLs and words, so that every rule fires.
Agreement is the share of URLs with the same first reason, under `matching: exact` (where it should be all) and under
the default. Seconds are those of one pinned core, for the crawl's own URLs and for those built to be rejected. Loading
is done once per process; its time is separate. Memory: the size of the lists here, and the growth of datatrove's
process at loading.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import documents
import peers
import pyarrow as pa

from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages import filter_url

FORMS = ("http://{}/", "https://www.{}/a/b?c=d", "http://sub.of.{}", "http://{}.example.com/", "HTTPS://{}/#top")


def crawled(source: Path | None) -> list[str]:
    """Return the URLs of all documents of the crawl."""
    inputs = sorted(source.glob("*.wet.gz")) if source else [documents.demo_crawl() / "2026-11-19"]
    with tempfile.TemporaryDirectory(prefix="refinery-urls-") as root:
        urls = documents.after("extract", inputs, Path(root), ("url",))["url"].to_pylist()
    return [url for url in urls if url]


def listed_urls(lists: dict[str, Path], count: int) -> list[str]:
    """Return URLs with a listed host, URL or word, drawn by a fixed seed."""
    drawn = random.Random(0)  # noqa: S311 -- the same URLs in every run
    urls = []
    for name, path in lists.items():
        items = path.read_text().splitlines()
        for item in drawn.choices(items, k=count // len(lists)):
            form = (
                drawn.choice(FORMS) if name == "domains" else "http://{}" if name == "urls" else "http://a.com/x-{}/y"
            )
            urls.append(form.format(item))
    words = lists["soft_words"].read_text().splitlines()
    return urls + [f"http://a.com/{'/'.join(drawn.sample(words, 2))}" for _ in range(count // len(lists))]


def screened(urls: list[str], crawl: int, lists: dict[str, Path], matching: Any) -> dict[str, Any]:  # noqa: ANN401 -- one of two
    """Return our first reasons, seconds for the first `crawl` URLs and for the others, and memory."""
    paths = {name: FilePath(str(path)) for name, path in lists.items()}
    params = filter_url.Params(matching=matching, **paths)  # type: ignore[arg-type]
    list(filter_url.screen(iter([pa.record_batch({"url": urls[:1]})]), params=filter_url.Params()))  # compiles
    started = time.process_time()
    filter_url.read_lists(params)
    loaded = time.process_time() - started
    reasons, times = [], []
    for part in (urls[:crawl], urls[crawl:]):
        started = time.process_time()
        batches = list(filter_url.screen(iter(pa.table({"url": part}).to_batches(4096)), params=params))
        times.append(time.process_time() - started)
        reasons += [reason and reason.partition(":")[2] for batch in batches for reason in batch["reason"].to_pylist()]
    return {"reasons": reasons, "seconds": times, "load_s": loaded, "bytes": filter_url.list_bytes(params)}


def main() -> None:
    """Print agreement, speed and memory; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, default=documents.WET if documents.WET.exists() else None)
    parser.add_argument("--urls", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    python = peers.install()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="refinery-urls-") as name:
        request = Path(name) / "urls.json"
        request.write_text("[]")
        peers.run("peer_urls.py", str(request), name, python=python)
        (assets,) = python.parent.parent.glob("lib/*/site-packages/datatrove/assets")
        lists = {listed: next(Path(name).glob(f"**/url_filter/{listed}")) for listed in ("domains", "urls")}
        for listed, file in (("hard_words", "banned"), ("soft_words", "soft_banned")):
            lists[listed] = assets / f"{file}_words.txt"
        lists["subwords"] = assets / "banned_subwords.txt"
        own = crawled(options.input)
        crawl, urls = len(own), [*own, *listed_urls(lists, options.urls)]
        request.write_text(json.dumps(urls))
        theirs = peers.run("peer_urls.py", str(request), name, python=python)
        ours = {matching: screened(urls, crawl, lists, matching) for matching in ("exact", "normalized")}
        entries = sum(len(path.read_text().splitlines()) for path in lists.values())
    print(f"{len(urls):,} URLs, {entries:,} entries; first reasons there: {dict(Counter(theirs['reasons']))}")
    figures: dict[str, float] = {}
    for matching, own_figures in ours.items():
        pairs = Counter(zip(theirs["reasons"], own_figures["reasons"], strict=True))
        figures[f"agree_{matching}"] = round(sum(n for (a, b), n in pairs.items() if a == b) / len(urls), 5)
        print(f"{matching}: {figures[f'agree_{matching}']:.2%} alike; else (there, here):")
        for (their_reason, our_reason), count in pairs.most_common():
            if their_reason != our_reason:
                example = next(
                    url for url, *pair in zip(urls, theirs["reasons"], own_figures["reasons"], strict=True)
                    if pair == [their_reason, our_reason]
                )  # fmt: skip
                print(f"  {count:>6} {their_reason} -> {our_reason}, such as {example[:90]}")
    own_figures = ours["normalized"]
    figures |= {
        "url_us": round(own_figures["seconds"][0] / crawl * 1e6, 1),
        "url_ratio": round(sum(theirs["seconds"][:crawl]) / own_figures["seconds"][0], 1),
        "rejected_us": round(own_figures["seconds"][1] / (len(urls) - crawl) * 1e6, 1),
        "rejected_ratio": round(sum(theirs["seconds"][crawl:]) / own_figures["seconds"][1], 1),
        "load_s": round(own_figures["load_s"], 1),
        "load_s_there": round(theirs["load_s"], 1),
        "mb_per_million": round(own_figures["bytes"] / entries, 1),
        "mb_per_million_there": round(theirs["bytes"] / entries, 1),
    }
    for key, value in figures.items():
        print(f"{key:<24}{value:>10}")
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
