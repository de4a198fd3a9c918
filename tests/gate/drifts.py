"""Days refined by real stages, the last of which has drifted."""

import random
from pathlib import Path

import pyarrow as pa

from tests.documents import documents
from tests.fasttext_file import write_model
from tests.refining import commit_parent, refined

Days = tuple[list[str], str]
"""The paths of the manifests of usual days, and that of a day that has drifted."""

TEXT = (
    "the of and to in is that it was for on with as his they at be this have from or had by but what some we can out "
    "other were all there when up use your how said an each she which do their time if will way about many then them"
)
WORDS = TEXT.split()


BLIND = {"shipped_models": False}
"""Params without language models: the words of `prose` are in disorder."""


def prose(draws: random.Random, clutter: float) -> str:
    """Return twenty lines, of which a share is clutter that scores lower."""
    lines = round(20 * clutter)
    good = [" ".join(draws.choices(WORDS, k=12)).capitalize() + "." for _ in range(20 - lines)]
    return "\n".join([*good, *(f"| 12 | 0.4 | -- | ## | {draws.randrange(10**6)}" for _ in range(lines))])


def scored_day(root: Path, seed: int, clutter: float) -> str:
    """Refine a day of 400 texts with up to `clutter` of clutter by `score_quality`; return its manifest's path."""
    draws = random.Random(seed)
    texts = [prose(draws, draws.uniform(clutter - 0.4, clutter)) for _ in range(400)]
    columns = {"language": pa.array(["en"] * 400), "language_score": pa.array([0.9] * 400)}
    return refined(root, "score_quality", commit_parent(root, [documents(texts, **columns)]), BLIND)[0]


def scored_languages(root: Path, seed: int, **clutter: float) -> str:
    """Refine a day of 200 texts of each language, with up to so much clutter; return its manifest's path."""
    draws = random.Random(seed)
    texts = [prose(draws, draws.uniform(most - 0.25, most)) for most in clutter.values() for _ in range(200)]
    languages = [code for code in clutter for _ in range(200)]
    columns = {"language": pa.array(languages), "language_score": pa.array([0.9] * len(languages))}
    return refined(root, "score_quality", commit_parent(root, [documents(texts, **columns)]), BLIND)[0]


def quality_days(root: Path) -> Days:
    """Return four days, and one whose mean quality is 6 % lower."""
    return [scored_day(root, seed, 0.5) for seed in range(4)], scored_day(root, 9, 0.715)


def language_days(root: Path) -> Days:
    """Return three days in three languages, and one without French."""
    model = write_model(root / "model.bin", {"water": "en", "wasser": "de", "eau": "fr"})

    def day(*words: str) -> str:
        texts = [f"{word} {word} {number}" for word in words for number in range(200)]
        parent = commit_parent(root, [documents(texts)])
        return refined(root, "filter_language", parent, {"keep": [], "model": model, "min_chars": 1})[0]

    usual = [day("water", "wasser", "eau"), day("water", "eau", "wasser"), day("wasser", "eau", "water")]
    return usual, day("water", "wasser")


def crawl_day(number: int, **sites: int) -> pa.Table:
    """Return the documents of a day, new ones, by site."""
    urls = [f"https://www.{site}.org/{number}/{page}" for site, count in sites.items() for page in range(count)]
    return documents([f"the text of {url}" for url in urls], urls)


USUAL = {f"site{rank:02d}": 40 - rank for rank in range(30)}


def site_days(root: Path) -> Days:
    """Return four days of thirty sites, and one that another site floods."""

    def day(number: int, **sites: int) -> str:
        return refined(root, "dedup_exact", commit_parent(root, [crawl_day(number, **sites)]))[0]

    return [day(number, **USUAL) for number in range(4)], day(9, **USUAL, flood=300)
