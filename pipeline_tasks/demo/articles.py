"""Cuts prose into articles, edits them, and measures how similar two of them are."""

from collections.abc import Iterator, Sequence
from random import Random

from pipeline_tasks.demo import prose
from pipeline_tasks.demo.pages import Article
from pipeline_tasks.text.pii.candidates import Limits

_FILLERS = ("often", "therefore", "usually", "perhaps", "indeed", "clearly", "mostly", "sometimes", "likewise", "again")

_SHINGLE = 5
_WORDS = (200, 420)


def articles(rng: Random) -> list[Article]:
    """Return all English articles, 200 to 420 words each, in an order that mixes the packages."""
    candidates = [article for paragraphs in prose.english().values() for article in _package_articles(paragraphs, rng)]
    rng.shuffle(candidates)
    return [article for article in candidates if not _has_pii(article)]


def _package_articles(paragraphs: Sequence[str], rng: Random) -> Iterator[Article]:
    chosen: list[str] = []
    words, target = 0, rng.randrange(*_WORDS)
    for paragraph in paragraphs:
        if any(_opening(paragraph) == _opening(other) for other in chosen):
            continue  # manuals repeat a sentence for each parameter; a page that does so reads like spam
        chosen.append(paragraph)
        words += len(paragraph.split())
        if words >= target:
            yield article_of(chosen)
            chosen, words, target = [], 0, rng.randrange(*_WORDS)


def _opening(paragraph: str) -> list[str]:
    return paragraph.split()[:3]


def _has_pii(article: Article) -> bool:
    from pipeline_tasks.text.pii.findings import find_pii

    return bool(find_pii("\n".join((article.title, *article.paragraphs)).encode(), Limits()))


def article_of(paragraphs: Sequence[str], language: str = "en") -> Article:
    """Return an article whose title is the first words of its first paragraph."""
    title = " ".join(paragraphs[0].split()[:4]).rstrip(".,;:。")[:80]
    return Article(title, tuple(paragraphs), language)


def insert_paragraph(article: Article, paragraph: str) -> Article:
    """Return a copy with a paragraph in its middle."""
    middle = len(article.paragraphs) // 2
    paragraphs = (*article.paragraphs[:middle], paragraph, *article.paragraphs[middle:])
    return Article(article.title, paragraphs, article.language)


def edit(article: Article, rng: Random) -> tuple[Article, float]:
    """Return a copy with about one word in a hundred replaced, and its exact Jaccard index of word 5-grams."""
    paragraphs = [paragraph.split() for paragraph in article.paragraphs]
    total = sum(map(len, paragraphs))
    for _ in range(max(1, total // 100)):
        words = paragraphs[rng.randrange(len(paragraphs))]
        words[rng.randrange(len(words) - 1)] = rng.choice(_FILLERS)
    copy = Article(article.title, tuple(" ".join(words) for words in paragraphs), article.language)
    return copy, round(jaccard_index(article.words, copy.words), 6)


def jaccard_index(left: Sequence[str], right: Sequence[str]) -> float:
    """Return the Jaccard index of the sets of word 5-grams."""
    left_shingles, right_shingles = _shingles(left), _shingles(right)
    return len(left_shingles & right_shingles) / len(left_shingles | right_shingles)


def _shingles(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1)}
