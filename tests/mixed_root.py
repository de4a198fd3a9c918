"""A root of five days in several languages and of many sites, the last of which has drifted."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.chain import How, refined
from tests.fasttext_file import write_model

RECIPE = "mixed"
DAYS = tuple(f"2026-11-{day}" for day in range(16, 21))
HOSTILE = "<img src=x onerror=alert(1)>.org"
RECIPE_FILE = """
name: mixed
stages:
  ingest: {{}}
  extract: {{min_chars: 1}}
  filter_language: {{keep: [en, de], model: {model}, min_chars: 1}}
  dedup_exact: {{buckets: 1}}
  scrub_pii: {{}}
"""


def usual_day(day: str) -> Iterator[Mapping[str, str]]:
    """Yield 20 English documents of as many sites, 6 German ones of another, and 4 French ones."""
    sites = [("water", f"s{rank:02d}.org") for rank in range(20)]
    sites += [("wasser", "a.org")] * 6 + [("eau", "f.org")] * 4
    for number, (word, site) in enumerate(sites):
        yield {"text": f"{word} {day} {number}", "url": f"https://www.{site}/{day}/{number}"}


def drifted_day(day: str) -> Iterator[Mapping[str, str]]:
    """Yield 2 English documents of a known site, 6 of a new one, of which 4 are equal, and 2 French ones."""
    sites = [("water", "a.org", number) for number in range(2)] + [("eau", "f.org", number) for number in range(2)]
    sites += [("water", HOSTILE, max(number, 3) + 9) for number in range(6)]
    for at, (word, site, number) in enumerate(sites):
        yield {"text": f"{word} {day} {number}", "url": f"https://{site}/{day}/{at}"}


def build(folder: Path) -> Path:
    """Refine four usual days and a drifted one below `folder`; return the root."""
    model = write_model(folder / "model.bin", {"water": "en", "wasser": "de", "eau": "fr"})
    recipe = folder / f"{RECIPE}.yaml"
    recipe.write_text(RECIPE_FILE.format(model=model))
    for day in DAYS:
        (folder / "landing" / day).mkdir(parents=True)
        records = drifted_day(day) if day == DAYS[-1] else usual_day(day)
        (folder / "landing" / day / "a.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
        refined(str(folder / "root"), str(folder / "landing" / day), How(recipe=str(recipe)))
    return folder / "root"
