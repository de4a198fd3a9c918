"""`python -m pipeline_tasks.demo.warm` compiles the loops over text, so that no task of a cluster has to.

It refines one small snapshot of the demo's crawl with every stage that has loops. What is compiled stays below
NUMBA_CACHE_DIR: for this machine's processor, and for these files as they are. So it runs where the tasks will run, and
not when an image is built.
"""

import sys
import tempfile
from pathlib import Path

from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.embedded.dag_run import RunOptions, run

SCALE = 0.05
"""About 150 pages of every kind."""

SNAPSHOT = "2026-11-19"

RECIPE = """
name: warm
stages:
  ingest: {{}}
  extract: {{min_chars: 100}}
  filter_url: {{}}
  filter_language: {{keep: [en, de, fr, es, it, pt, ru, ja, zh], threshold: 0.5}}
  filter_quality: {{packs: fineweb2, edit_spans: true}}
  dedup_url: {{}}
  dedup_exact: {{}}
  dedup_minhash: {{}}
  dedup_paragraphs: {{}}
  score_quality: {{}}
  scrub_pii: {{action: redact}}
  decontaminate: {{benchmarks: {{demo_questions: {benchmark}}}}}
  tokenize: {{train: {{vocab_size: 512, min_bytes: 1000}}}}
  mix: {{}}
  shuffle: {{}}
  pack: {{length: 1024}}
run: {{partitions: 1, error_budget: {{share: 0.05, rows: 50}}}}
"""


def main() -> int:
    """Write the crawl, refine it, and remove both; return the exit code of the run."""
    with tempfile.TemporaryDirectory(prefix="warm-") as name:
        folder = Path(name)
        write_crawl(folder / "crawl", (SNAPSHOT,), scale=SCALE)
        recipe = folder / "warm.yaml"
        recipe.write_text(RECIPE.format(benchmark=folder / "crawl" / "benchmark.jsonl"))
        landing = str(folder / "crawl" / SNAPSHOT)
        return run(RunOptions(landing, str(folder / "root"), SNAPSHOT, str(recipe), engine="local"))


if __name__ == "__main__":
    sys.exit(main())
