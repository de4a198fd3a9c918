"""Makes the pages that a snapshot sees: articles, duplicates, personal data, rubbish, and broken records."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from pipeline_tasks.demo import pages
from pipeline_tasks.demo.articles import article_of, edit, insert_paragraph
from pipeline_tasks.demo.benchmark import BENCHMARK
from pipeline_tasks.demo.pages import Article
from pipeline_tasks.errors import RecipeError

Form = Literal["response", "revisit", "flipped", "short", "long", "cut"]

UNWANTED = frozenset({"ko", "nl", "pl", "tr"})
"""Languages of pages that neither the demo's recipe nor one for English keeps."""

_HOSTS = tuple(
    f"{name}.example.{top}"
    for name in ("docs", "wiki", "blog", "learn", "forum", "handbook")
    for top in ("com", "org", "net")
)

STATUS = {200: "200 OK", 301: "301 Moved Permanently", 404: "404 Not Found", 500: "500 Internal Server Error"}

_NAMES = (
    "ada.moss",
    "ben_ortiz",
    "carla.weiss",
    "deniz.kaya",
    "elif-stone",
    "femi.adeyemi",
    "grace.lin",
    "hugo.brandt",
)

_AREAS = (212, 312, 415, 617, 206, 303, 404, 512, 713, 202)

_CHARSETS = {"de": "iso-8859-1", "ru": "windows-1251", "ja": "shift_jis"}

_BOMB = 30 * 1024 * 1024  # bytes that a small gzip body swells to


@dataclass(frozen=True, slots=True)
class Capture:
    """One page as one snapshot saw it."""

    kind: str
    url: str
    body: bytes = b""
    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    coding: tuple[tuple[str, str], ...] = ()
    form: Form = "response"
    article: Article | None = None
    cluster: str = ""
    jaccard: float | None = None
    counts: dict[str, int] | None = None
    earlier: tuple[str, str] = ("", "")


@dataclass(slots=True)
class Web:
    """The supply of text and URLs that snapshots are made of; every article is used once."""

    rng: Random
    articles: Iterator[Article]
    sentences: dict[str, list[str]]
    code: Iterator[str]
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))

    def url(self, folder: str, suffix: str = ".html") -> str:
        """Return a new URL."""
        number = next(self.numbers)
        return f"https://{_HOSTS[number * 7 % len(_HOSTS)]}/{folder}/{folder}-{number:05d}{suffix}"

    def article(self) -> Article:
        """Return the next article; RecipeError if the installed packages have too little text."""
        article = next(self.articles, None)
        if article is None:
            message = (
                "the installed packages have too little text for this many snapshots; ask for fewer or a smaller scale"
            )
            raise RecipeError(message)
        return article


def _html(content: Article, url: str, rng: Random) -> bytes:
    return pages.article(content, url.split("/")[2], rng).encode()


def _plain(web: Web, kind: str, content: Article | None = None, url: str = "", **facts: object) -> Capture:
    content, url = content or web.article(), url or web.url("guide")
    return Capture(kind, url, _html(content, url, web.rng), article=content, **facts)  # type: ignore[arg-type]


def recrawled(web: Web, recipe: dict[str, int], before: list[Capture]) -> Iterator[Capture]:
    """Yield what a later snapshot sees again: unchanged, edited, rewritten, copied elsewhere."""
    if not before:
        return
    old = iter(before)
    for _ in range(recipe["unchanged"]):
        page = next(old)
        yield Capture("unchanged", page.url, page.body, coding=page.coding, article=page.article)
    for _ in range(recipe["revisit"]):
        page = next(old)
        yield Capture("revisit", page.url, page.body, form="revisit", coding=page.coding, earlier=page.earlier)
    for _ in range(recipe["edited"]):
        page = next(old)
        edited, jaccard = edit(_content(page), web.rng)
        yield _plain(web, "edited", edited, page.url, jaccard=jaccard)
    for _ in range(recipe["rewritten"]):
        yield _plain(web, "rewritten", url=next(old).url)
    for _ in range(recipe["exact_across"]):
        yield _plain(web, "exact_across", next(old).article)
    for _ in range(recipe["near_across"]):
        edited, jaccard = edit(_content(next(old)), web.rng)
        yield _plain(web, "near_across", edited, jaccard=jaccard)


def _content(page: Capture) -> Article:
    return page.article or Article("", ())


def fresh(web: Web, recipe: dict[str, int]) -> Iterator[Capture]:
    """Yield what a snapshot sees for the first time, good and bad."""
    for number in range(recipe["article"]):
        yield _transferred(_plain(web, "article"), number)
    for number in range(recipe["exact"]):
        content, cluster = web.article(), web.url("cluster")
        for _ in range(3 if number % 4 == 0 else 2):
            yield _plain(web, "exact", content, cluster=cluster)
    for _ in range(recipe["near"]):
        content, cluster = web.article(), web.url("cluster")
        edited, jaccard = edit(content, web.rng)
        yield _plain(web, "near", content, cluster=cluster, jaccard=jaccard)
        yield _plain(web, "near", edited, cluster=cluster, jaccard=jaccard)
    for number in range(recipe["personal"]):
        yield _personal(web, number)
    for number in range(recipe["contaminated"]):
        yield _contaminated(web, number)
    for language, sentences in web.sentences.items():
        for number in range(recipe["language"]):
            yield _foreign(web, language, sentences, number)
    yield from _rubbish(web, recipe)
    yield from _broken(web, recipe)


def _transferred(page: Capture, number: int) -> Capture:
    """Return `page`; of every hundred, one is compressed and one chunked in transfer, as servers do."""
    if number % 100 == 1:
        body = gzip.compress(page.body, mtime=0)
        return Capture(page.kind, page.url, body, coding=(("Content-Encoding", "gzip"),), article=page.article)
    if number % 100 == 2:  # noqa: PLR2004 -- another one in a hundred
        half = len(page.body) // 2
        chunks = [page.body[:half], page.body[half:], b""]
        body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        return Capture(page.kind, page.url, body, coding=(("Transfer-Encoding", "chunked"),), article=page.article)
    return page


def _personal(web: Web, number: int) -> Capture:
    """Return an article that names a mail address, a phone number or a host; made up, valid, and nobody's.

    Mail is at example.com; phones use the 555 exchange outside of 555-01xx, which validators refuse to call
    a phone; addresses are in 11.0.0.0/8, which is allocated but not announced to the public.
    """
    person, area, line = _NAMES[number % len(_NAMES)], _AREAS[number % len(_AREAS)], 2000 + number
    mail = f"{person}{number}@example.com"
    phone = (f"({area}) 555-{line}", f"{area}-555-{line}", f"+1 {area} 555 {line}", f"{area}.555.{line}")[number % 4]
    host = f"11.{20 + number % 200}.{30 + number * 7 % 200}.{40 + number * 3 % 200}"
    texts = (
        (f"If a page is out of date, please write to {mail} and say which paragraph is wrong.", "email"),
        (f"Readers who prefer to talk can call {phone} on weekdays, and somebody will take their notes.", "phone"),
        (f"A mirror of this page is served from {host} for those who cannot reach the main site.", "ip"),
    )
    chosen = texts if number % 5 == 0 else (texts[number % 3],)
    content = insert_paragraph(web.article(), " ".join(text for text, _ in chosen))
    return _plain(web, "personal", content, counts={f"pii_{kind}": 1 for _, kind in chosen})


def _contaminated(web: Web, number: int) -> Capture:
    question, answer = BENCHMARK[number % len(BENCHMARK)]
    return _plain(web, "contaminated", insert_paragraph(web.article(), f"{question} The answer is {answer}."))


def _foreign(web: Web, language: str, sentences: list[str], number: int) -> Capture:
    """Return a page of real sentences in another language, one in four in its legacy charset."""
    many = 30 if language in ("ja", "ko", "zh-CN") else 16
    chosen = web.rng.sample(sentences, min(many, len(sentences)))
    content = article_of([" ".join(chosen[at : at + 4]) for at in range(0, len(chosen), 4)], language)
    url = web.url(language.lower())
    charset = _CHARSETS.get(language, "utf-8") if number % 4 == 0 else "utf-8"
    text = pages.article(content, url.split("/")[2], web.rng).replace('charset="utf-8"', f'charset="{charset}"')
    body = text.encode(charset, "xmlcharrefreplace")
    kind = "language" if language in UNWANTED else "multilingual"
    return Capture(kind, url, body, content_type=f"text/html; charset={charset}", article=content)


def _rubbish(web: Web, recipe: dict[str, int]) -> Iterator[Capture]:
    """Yield valid records that are not worth keeping."""
    for _ in range(recipe["boilerplate"]):
        url = web.url("page")
        yield Capture("boilerplate", url, pages.boilerplate(url.split("/")[2], web.rng).encode())
    for _ in range(recipe["spam"]):
        url = web.url("offers")
        yield Capture("spam", url, pages.spam(url.split("/")[2], web.rng).encode())
    for _ in range(recipe["listing"]):
        url = web.url("source")
        yield Capture("listing", url, pages.listing(next(web.code), url.split("/")[2], web.rng).encode())
    kinds = (
        ("application/pdf", ".pdf", b"%PDF-1.4\n"),
        ("image/png", ".png", b"\x89PNG\r\n\x1a\n"),
        ("application/json", ".json", b"{}"),
    )
    for number in range(recipe["not_html"]):
        content_type, suffix, magic = kinds[number % len(kinds)]
        yield Capture("not_html", web.url("files", suffix), magic + web.rng.randbytes(2000), content_type=content_type)
    for number in range(recipe["http_error"]):
        status = 500 if number % 4 == 0 else 404
        yield Capture("http_error", web.url("gone"), f"<html><h1>{STATUS[status]}</h1></html>".encode(), status)
    for _ in range(recipe["redirect"]):
        yield Capture("redirect", web.url("moved"), status=301, coding=(("Location", f"https://{_HOSTS[0]}/"),))
    for _ in range(recipe["empty"]):
        yield Capture("empty", web.url("empty"))


def _broken(web: Web, recipe: dict[str, int]) -> Iterator[Capture]:
    """Yield records and bodies whose headers are wrong."""
    russian = web.sentences.get("ru") or ["Страница не найдена."]
    for _ in range(recipe["bad_charset"]):
        url = web.url("charset")
        content = article_of(web.rng.sample(russian, min(16, len(russian))), "ru")
        text = pages.article(content, url.split("/")[2], web.rng)
        yield Capture("bad_charset", url, text.encode("windows-1251", "xmlcharrefreplace"))
    for _ in range(recipe["nested"]):
        yield Capture("nested", web.url("deep"), pages.nested(web.article(), 20_000).encode())
    for _ in range(recipe["bad_chunks"]):
        page = _plain(web, "bad_chunks")
        body = b"3e8\r\n" + page.body[:1000] + b"\r\nzz9\r\n" + page.body[1000:]
        yield Capture("bad_chunks", page.url, body, coding=(("Transfer-Encoding", "chunked"),))
    for _ in range(recipe["bomb"]):
        yield Capture("bomb", web.url("bomb"), _zeros(_BOMB), coding=(("Content-Encoding", "gzip"),))
    forms: tuple[Form, ...] = ("flipped", "short", "long", "cut")
    for form in forms:
        for _ in range(recipe[form]):
            yield _plain(web, form, form=form)


def _zeros(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()
