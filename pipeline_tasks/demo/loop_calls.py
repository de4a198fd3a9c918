"""`python -m pipeline_tasks.demo.loop_calls` records with which types of arguments stages call the loops over text.

It refines the demo's crawl by the recipes of a first run, then by others that together use every loop, with a cache of
its own, and writes what was compiled for calls from Python to `pipeline_tasks/text/base/loop_calls.json`. Run it when a
loop is new or takes other arguments; `tests/demo/test_nothing_compiles.py` fails until then.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SCALE = 0.05
"""About 150 pages of every kind."""

DAYS = ("2026-11-19", "2026-11-20")
"""Two: the second compares with the history that the first saves."""

RARE = {"pipeline_tasks.text.pii.visible.visible_bytes": [["uint8 1d C readonly"]]}
"""Calls for texts that crawls have, and the demo's has not: of full-width forms and invisible characters."""

FIRST = """
  ingest: {{}}
  extract: {{min_chars: 100}}
  filter_url: {{domains: {list}, urls: {list}, hard_words: {list}, soft_words: {list}, subwords: {list}}}
"""

LAST = """
run: {{partitions: 1, error_budget: {{share: 0.05, rows: 50}}}}
"""

BUILD = """
name: {method}
versions: {{recipe: defaults}}
stages:
  tokenize: {{train: {{vocab_size: 512, min_bytes: 1000}}}}
  select: {{}}
  mix: {{}}
  shuffle: {{}}
  pack: {{length: 512, method: {method}}}
"""

RECIPES = {
    "defaults": """
  filter_language: {{keep: [en, de, fr, es, it, pt, ru, ja, zh], threshold: 0.5}}
  filter_quality: {{packs: fineweb2, edit: true}}
  dedup_url: {{}}
  dedup_exact: {{}}
  dedup_minhash: {{}}
  dedup_paragraphs: {{}}
  score_quality: {{}}
  filter_toxicity: {{}}
  scrub_pii: {{action: redact}}
  decontaminate: {{benchmarks: {{demo_questions: {questions}}}}}
  enrich: {{}}
""",
    "spacy": """
  filter_language: {{keep: [en, de, fr, es], threshold: 0.3, windows: [0, 0.5], window: 500, mixed: reject}}
  filter_quality:
    profiles: [gopher_repetition, gopher_quality, c4, fineweb, c4_badwords, c4_paragraphs]
    words: spacy
    edit: true
    c4_badwords: {{bad_words: {{en: {list}}}}}
  dedup_exact: {{}}
  dedup_minhash: {{shingle: char, similarity: containment, edges_in_memory: 1}}
  dedup_paragraphs: {{unit: paragraph}}
  decontaminate: {{benchmarks: {{demo_questions: {questions}}}, action: cut}}
""",
    "profiles": """
  filter_language: {{keep: [en, de, fr, es], threshold: 0.3, unit: paragraph, foreign: cut}}
  filter_quality:
    profiles: [cc_net, dclm, dolma, nemo, seeds, running_sentences]
    words: unicode
    edit: true
""",
}


def main() -> int:
    """Record into the file, or check that it has all calls; return 1 if it lacks one, or the exit code of a run."""
    parser = argparse.ArgumentParser(prog="python -m pipeline_tasks.demo.loop_calls", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compile ahead, and fail if a run compiles more")
    is_check = parser.parse_args().check
    with tempfile.TemporaryDirectory(prefix="loops-") as name:
        if not is_check:
            os.environ["NUMBA_CACHE_DIR"] = f"{name}/numba"
        from pipeline_tasks.demo.crawl import write_crawl
        from pipeline_tasks.run.loops import ensure_compiled
        from pipeline_tasks.text.base.loop_calls import RECORDED, Calls, first_calls, mark_compiled
        from pipeline_tasks.text.base.recording import recorded
        from pipeline_tasks.text.page.main_text import BLOCKS, load

        if is_check:
            ensure_compiled(sys.stdout, all_loops=True)
        else:
            mark_compiled(first_calls())  # each loop is compiled by the call that is recorded, and none before
        write_crawl(Path(name) / "crawl", DAYS, scale=SCALE)
        parts: dict[str, Calls] = {}
        for part, runs in (("first", first_runs), ("later", other_runs)):
            with recorded() as parts[part]:
                load(BLOCKS)  # stages call these loops in a process of its own
                for code in runs(Path(name)):
                    if code:
                        return code
        if is_check:
            calls = [path for part in parts.values() for path in part]
            sys.stdout.writelines(f"{path} was compiled by a task; record the calls again\n" for path in calls)
            return 1 if calls else 0
        recording = {**parts, "later": {**parts["later"], **RARE}}
        RECORDED.write_text(json.dumps(recording, indent=1) + "\n", encoding="utf-8")
    return 0


def first_runs(folder: Path) -> Iterator[int]:
    """Refine a day by the recipes of the demo and of the web, and build the demo's dataset; yield each exit code."""
    from pipeline_tasks.demo.show import BUILD, recipe_of

    for recipe in (recipe_of(folder), "web"):
        yield _refined(folder, "shipped", DAYS[0], recipe)
    yield _built(folder, "shipped", BUILD)


def other_runs(folder: Path) -> Iterator[int]:
    """Refine both days by every recipe, and build two datasets; yield the exit code of each run."""
    names = {"list": folder / "list", "questions": folder / "crawl" / "benchmark.jsonl"}
    names["list"].write_text("example.invalid\nhttp://example.invalid/\n")
    for name, stages in RECIPES.items():
        recipe = folder / f"{name}.yaml"
        recipe.write_text(f"name: {name}\nstages:{(FIRST + stages + LAST).format(**names)}")
        for day in DAYS:
            yield _refined(folder, "root", day, str(recipe))
    for method in ("concat", "best_fit"):
        recipe = folder / f"{method}.yaml"
        recipe.write_text(BUILD.format(method=method))
        yield _built(folder, "root", str(recipe))


def _refined(folder: Path, root: str, day: str, recipe: str) -> int:
    from pipeline_tasks.flow.running import RunOptions, run
    from pipeline_tasks.gate.checks import gate_names
    from pipeline_tasks.recipe import load_recipe

    override = dict.fromkeys(gate_names(load_recipe(recipe)), "few rows")
    landed = str(folder / "crawl" / day)
    return run(RunOptions(landed, str(folder / root), day, recipe, engine="local", override=override, builds=False))


def _built(folder: Path, root: str, recipe: str) -> int:
    from pipeline_tasks.flow.running import BuildOptions, build

    return build(BuildOptions(str(folder / root), recipe, engine="local"))


if __name__ == "__main__":
    sys.exit(main())
