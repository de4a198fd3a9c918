"""Plans two successive crawls of one small web, plants what a refinery should find, and writes them as WARC."""

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

from pipeline_tasks.demo import pages, prose, warc
from pipeline_tasks.demo.pages import Article
from pipeline_tasks.demo.truth import KEPT, Plant, Truth
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.findings import find_pii

Form = Literal["response", "revisit", "flipped", "short", "long", "cut"]

FIRST = {
    "article": 1150, "exact": 40, "near": 50, "personal": 40, "contaminated": 8, "language": 12, "boilerplate": 80,
    "spam": 60, "listing": 40, "not_html": 24, "http_error": 40, "redirect": 10, "empty": 4, "bad_charset": 4,
    "nested": 2, "bad_chunks": 2, "bomb": 1, "flipped": 1, "short": 1, "long": 1, "cut": 1,
}  # fmt: skip
"""Plants in the first snapshot; `exact` counts clusters, `near` pairs, `language` pages of each language."""

LATER = FIRST | {
    "article": 450, "exact": 10, "near": 10, "personal": 20, "contaminated": 4, "language": 7, "boilerplate": 40,
    "spam": 30, "listing": 20, "not_html": 12, "http_error": 20, "redirect": 5, "empty": 2, "bad_charset": 2,
    "nested": 1, "bad_chunks": 1, "unchanged": 200, "revisit": 100, "edited": 40, "rewritten": 40, "exact_across": 40,
    "near_across": 40,
}  # fmt: skip
"""Plants in a later snapshot; what it recrawls is taken from the plain articles of the one before."""

DAMAGED = frozenset({"flipped", "short", "long", "cut"})
"""Forms of records that do not hold what their headers promise."""

_POOR = ("extract:", "filter_", "gopher_", "c4:", "fineweb:", "score_quality:", "dedup_")

EXPECTED: dict[str, tuple[str, ...]] = {
    "article": (KEPT,),
    "rewritten": (KEPT,),
    "personal": (KEPT,),
    "exact": ("dedup_exact:",),
    "exact_across": ("dedup_exact:",),
    "near": ("dedup_minhash:", "dedup_exact:"),
    "near_across": ("dedup_minhash:", "dedup_exact:"),
    "edited": ("dedup_minhash:", "dedup_exact:"),
    "unchanged": ("ingest:",),
    "revisit": ("ingest:",),
    "contaminated": ("decontaminate:",),
    "multilingual": (KEPT, "filter_language:"),  # the recipe decides
    "language": ("filter_language:",),
    "boilerplate": _POOR,
    "spam": _POOR,
    "listing": _POOR,
    "not_html": ("ingest:",),
    "http_error": ("ingest:",),
    "redirect": ("ingest:",),
    "empty": ("ingest:", "extract:", "error:"),
    "bad_charset": (KEPT, "error:", "filter_language:"),  # read aright in spite of its header, or not at all
    "nested": ("",),  # any outcome, as long as the run survives and accounts for it
    "bad_chunks": ("ingest:", "error:"),
    "bomb": ("ingest:", "error:"),
    "flipped": ("ingest:", "error:"),
    "short": ("ingest:", "error:"),
    "long": ("ingest:", "error:"),
    "cut": ("ingest:", "error:"),
}
"""What may become of each kind under a recipe for English text."""

BENCHMARK = (
    (
        (
            "A baker fills nine trays with fourteen rolls each and sells all but "
            "eleven of them before noon. How many rolls did the baker sell before noon?"
        ),
        "115",
    ),
    (
        (
            "A ferry crosses the bay in thirty five minutes and rests ten minutes at each pier. "
            "How many single crossings can it finish in six hours if it starts with a crossing?"
        ),
        "8",
    ),
    (
        (
            "Marta reads twelve pages on Monday and four more pages on each following day than "
            "on the day before. How many pages has she read by the end of Friday?"
        ),
        "100",
    ),
    (
        (
            "A rope of ninety six meters is cut into three pieces so that the second is "
            "twice the first and the third is three times the first. How long is the longest piece?"
        ),
        "48",
    ),
    (
        (
            "Seven gardeners plant seven hedges in seven days. How many hedges do fourteen "
            "gardeners plant in fourteen days if all of them work at the same pace?"
        ),
        "28",
    ),
    (
        (
            "A library lends two hundred books on Saturday and forty percent of them come "
            "back on Sunday. How many of the lent books are still out on Sunday night?"
        ),
        "120",
    ),
    (
        (
            "A train with eighteen cars carries sixty two passengers in each car, and one third "
            "of all passengers leave at the first stop. How many passengers stay on the train?"
        ),
        "744",
    ),
    (
        (
            "Olga saves three coins on the first day and doubles the number each day. On "
            "which day does she put aside more than one hundred coins for the first time?"
        ),
        "7",
    ),
)
"""Questions of the demo's own evaluation set; written for it, so that nobody else's benchmark is leaked."""

UNWANTED = frozenset({"ko", "nl", "pl", "tr"})
"""Languages of pages that neither the demo's recipe nor one for English keeps."""

_HOSTS = tuple(
    f"{name}.example.{top}"
    for name in ("docs", "wiki", "blog", "learn", "forum", "handbook")
    for top in ("com", "org", "net")
)
_STATUS = {200: "200 OK", 301: "301 Moved Permanently", 404: "404 Not Found", 500: "500 Internal Server Error"}
_FILLERS = ("often", "therefore", "usually", "perhaps", "indeed", "clearly", "mostly", "sometimes", "likewise", "again")
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
_SHINGLE = 5
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
    """The supply of text and addresses that snapshots are made of; every article is handed out once."""

    rng: Random
    articles: Iterator[Article]
    sentences: dict[str, list[str]]
    code: Iterator[str]
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))

    def url(self, folder: str, suffix: str = ".html") -> str:
        """Return an address nobody had before."""
        number = next(self.numbers)
        return f"https://{_HOSTS[number * 7 % len(_HOSTS)]}/{folder}/{folder}-{number:05d}{suffix}"

    def article(self) -> Article:
        """Return the next article, or say that the installed packages do not hold enough text."""
        found = next(self.articles, None)
        if found is None:
            message = (
                "the installed packages hold too little text for this many snapshots; ask for fewer or a smaller scale"
            )
            raise RecipeError(message)
        return found


def write_crawl(
    folder: Path,
    snapshots: Sequence[str] = ("2026-11-19", "2026-11-20"),
    files: int = 4,
    seed: int = 20261119,
    scale: float = 1.0,
) -> Truth:
    """Write `folder`/<snapshot>/*.warc.gz with `snapshot.json` written last, `benchmark.jsonl` and `truth.json`.

    The same arguments give the same bytes on the same environment. `scale` multiplies the number of plants
    (at least one of each kind). Raises RecipeError when the prose of the installed packages runs out.
    """
    rng = Random(seed)  # noqa: S311 - chance here makes variety, not secrets
    code = prose.listings()
    web = Web(rng, iter(_articles(rng)), prose.foreign(), iter(code * (1 + 400 // len(code))))
    folder.mkdir(parents=True, exist_ok=True)
    plants: list[Plant] = []
    records: dict[str, dict[str, int]] = {}
    before: list[Capture] = []
    for snapshot in snapshots:
        recipe = {kind: max(1, round(count * scale)) for kind, count in (LATER if before else FIRST).items()}
        captures = [*_recrawled(web, recipe, before), *_fresh(web, recipe)]
        captures.sort(key=_position)
        places, records[snapshot] = _write_snapshot(folder / snapshot, snapshot, captures, files)
        plants += _plants(snapshot, captures, places)
        before = _remembered(snapshot, captures, places)
    lines = [{"id": f"demo-{n}", "question": q, "answer": a} for n, (q, a) in enumerate(BENCHMARK)]
    (folder / "benchmark.jsonl").write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))
    truth = Truth(seed, records, tuple(plants))
    (folder / "truth.json").write_text(truth.dump())
    return truth


def _position(capture: Capture) -> tuple[bool, bytes]:
    """Return a sort key that mixes all kinds; damage is in the last eighth, `cut` at the very end of the last file."""
    mixed = hashlib.sha256(capture.url.encode()).digest()
    return capture.form == "cut", b"\xe0" + mixed if capture.form in DAMAGED else mixed


def _articles(rng: Random) -> list[Article]:
    """Return all English articles, 200 to 420 words each, in an order that mixes the packages."""
    articles: list[Article] = []
    for paragraphs in prose.english().values():
        taken: list[str] = []
        size, target = 0, rng.randrange(200, 420)
        for paragraph in paragraphs:
            if any(_opening(paragraph) == _opening(other) for other in taken):
                continue  # manuals say the same of each parameter; a page that does so reads like spam
            taken.append(paragraph)
            size += len(paragraph.split())
            if size >= target:
                articles.append(_article(taken))
                taken, size, target = [], 0, rng.randrange(200, 420)
    rng.shuffle(articles)
    return [one for one in articles if not find_pii("\n".join((one.title, *one.paragraphs)).encode(), Limits())]


def _article(paragraphs: Sequence[str], language: str = "en") -> Article:
    title = " ".join(paragraphs[0].split()[:4]).rstrip(".,;:。")[:80]
    return Article(title, tuple(paragraphs), language)


def _opening(paragraph: str) -> list[str]:
    return paragraph.split()[:3]


def _html(content: Article, url: str, rng: Random) -> bytes:
    return pages.article(content, url.split("/")[2], rng).encode()


def _plain(web: Web, kind: str, content: Article | None = None, url: str = "", **facts: object) -> Capture:
    content, url = content or web.article(), url or web.url("guide")
    return Capture(kind, url, _html(content, url, web.rng), article=content, **facts)  # type: ignore[arg-type]


def _recrawled(web: Web, recipe: dict[str, int], before: list[Capture]) -> Iterator[Capture]:
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
        edited, jaccard = _edited(_content(page), web.rng)
        yield _plain(web, "edited", edited, page.url, jaccard=jaccard)
    for _ in range(recipe["rewritten"]):
        yield _plain(web, "rewritten", url=next(old).url)
    for _ in range(recipe["exact_across"]):
        yield _plain(web, "exact_across", next(old).article)
    for _ in range(recipe["near_across"]):
        edited, jaccard = _edited(_content(next(old)), web.rng)
        yield _plain(web, "near_across", edited, jaccard=jaccard)


def _content(page: Capture) -> Article:
    return page.article or Article("", ())


def _edited(content: Article, rng: Random) -> tuple[Article, float]:
    """Return a copy with about one word in a hundred replaced, and its exact Jaccard index of word 5-grams."""
    paragraphs = [paragraph.split() for paragraph in content.paragraphs]
    total = sum(map(len, paragraphs))
    for _ in range(max(1, total // 100)):
        words = paragraphs[rng.randrange(len(paragraphs))]
        words[rng.randrange(len(words) - 1)] = rng.choice(_FILLERS)
    copy = Article(content.title, tuple(" ".join(words) for words in paragraphs), content.language)
    return copy, round(jaccard_index(content.words, copy.words), 6)


def jaccard_index(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the Jaccard index of the sets of word 5-grams."""
    mine, yours = _shingles(one), _shingles(other)
    return len(mine & yours) / len(mine | yours)


def _shingles(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1)}


def _fresh(web: Web, recipe: dict[str, int]) -> Iterator[Capture]:
    """Yield what a snapshot sees for the first time, good and bad."""
    for number in range(recipe["article"]):
        yield _transferred(_plain(web, "article"), number)
    for number in range(recipe["exact"]):
        content, cluster = web.article(), web.url("cluster")
        for _ in range(3 if number % 4 == 0 else 2):
            yield _plain(web, "exact", content, cluster=cluster)
    for _ in range(recipe["near"]):
        content, cluster = web.article(), web.url("cluster")
        edited, jaccard = _edited(content, web.rng)
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
    """Return `page`, now and then compressed or chunked in transfer, as servers do."""
    if number % 100 == 1:
        body = gzip.compress(page.body, mtime=0)
        return Capture(page.kind, page.url, body, coding=(("Content-Encoding", "gzip"),), article=page.article)
    if number % 100 == 2:  # noqa: PLR2004 -- another one in a hundred
        half = len(page.body) // 2
        chunks = [page.body[:half], page.body[half:], b""]
        body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        return Capture(page.kind, page.url, body, coding=(("Transfer-Encoding", "chunked"),), article=page.article)
    return page


def _with(content: Article, paragraph: str) -> Article:
    middle = len(content.paragraphs) // 2
    paragraphs = (*content.paragraphs[:middle], paragraph, *content.paragraphs[middle:])
    return Article(content.title, paragraphs, content.language)


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
    content = _with(web.article(), " ".join(text for text, _ in chosen))
    return _plain(web, "personal", content, counts={f"pii_{kind}": 1 for _, kind in chosen})


def _contaminated(web: Web, number: int) -> Capture:
    question, answer = BENCHMARK[number % len(BENCHMARK)]
    return _plain(web, "contaminated", _with(web.article(), f"{question} The answer is {answer}."))


def _foreign(web: Web, language: str, sentences: list[str], number: int) -> Capture:
    """Return a page of real sentences in another language, one in four in its legacy charset."""
    many = 30 if language in ("ja", "ko", "zh-CN") else 16
    chosen = web.rng.sample(sentences, min(many, len(sentences)))
    content = _article([" ".join(chosen[at : at + 4]) for at in range(0, len(chosen), 4)], language)
    url = web.url(language.lower())
    charset = _CHARSETS.get(language, "utf-8") if number % 4 == 0 else "utf-8"
    text = pages.article(content, url.split("/")[2], web.rng).replace('charset="utf-8"', f'charset="{charset}"')
    body = text.encode(charset, "xmlcharrefreplace")
    kind = "language" if language in UNWANTED else "multilingual"
    return Capture(kind, url, body, content_type=f"text/html; charset={charset}", article=content)


def _rubbish(web: Web, recipe: dict[str, int]) -> Iterator[Capture]:
    """Yield sound records that hold nothing worth keeping."""
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
        yield Capture("http_error", web.url("gone"), f"<html><h1>{_STATUS[status]}</h1></html>".encode(), status)
    for _ in range(recipe["redirect"]):
        yield Capture("redirect", web.url("moved"), status=301, coding=(("Location", f"https://{_HOSTS[0]}/"),))
    for _ in range(recipe["empty"]):
        yield Capture("empty", web.url("empty"))


def _broken(web: Web, recipe: dict[str, int]) -> Iterator[Capture]:
    """Yield records and bodies that lie about what they are."""
    russian = web.sentences.get("ru") or ["Страница не найдена."]
    for _ in range(recipe["bad_charset"]):
        url = web.url("charset")
        content = _article(web.rng.sample(russian, min(16, len(russian))), "ru")
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


def _identifier(snapshot: str, capture: Capture) -> str:
    return warc.record_id(snapshot, capture.url)


def _exchange(capture: Capture, date: str) -> warc.Exchange:
    headers = (("Date", date), ("Server", "demo"), ("Content-Type", capture.content_type), *capture.coding)
    length = () if ("Transfer-Encoding", "chunked") in capture.coding else (("Content-Length", str(len(capture.body))),)
    return warc.Exchange(capture.url, date, _STATUS[capture.status], headers + length, capture.body)


def _write_snapshot(
    folder: Path, snapshot: str, captures: Sequence[Capture], files: int
) -> tuple[dict[str, tuple[str, int, int, str]], dict[str, int]]:
    """Write the files of one snapshot, then its promise.

    Returns (file, offset, length, date) by URL, and the number of records by WARC type.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places: dict[str, tuple[str, int, int, str]] = {}
    counts = Counter[str]()
    promise = []
    share = -(-len(captures) // files)
    for number in range(files):
        name = f"demo-{snapshot}-{number:05d}.warc.gz"
        data = bytearray(warc.member(warc.warcinfo(name, f"{snapshot}T00:00:00Z")))
        counts["warcinfo"] += 1
        for at, capture in enumerate(captures[number * share : (number + 1) * share]):
            seconds = number * share + at
            date = f"{snapshot}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}Z"
            if at % 3 == 0:
                data += warc.member(warc.request(_exchange(capture, date), _identifier(snapshot, capture)))
                counts["request"] += 1
            member = _member(capture, snapshot, date)
            places[capture.url] = (name, len(data), len(member), date)
            data += member
            counts["revisit" if capture.form == "revisit" else "response"] += 1
        (folder / name).write_bytes(data)
        promise.append({"path": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    text = json.dumps({"snapshot": snapshot, "files": promise}, indent=1, sort_keys=True) + "\n"
    (folder / "snapshot.json").write_text(text)
    return places, dict(counts)


def _member(capture: Capture, snapshot: str, date: str) -> bytes:
    """Return the gzip member of `capture`, damaged as its form says."""
    exchange, identifier = _exchange(capture, date), _identifier(snapshot, capture)
    if capture.form == "revisit":
        return warc.member(warc.revisit(exchange, identifier, *capture.earlier))
    lie = {"short": -300, "long": 4000}.get(capture.form, 0)
    member = warc.member(warc.response(exchange, identifier, lie))
    middle = len(member) // 2
    if capture.form == "flipped":
        return member[:middle] + bytes([member[middle] ^ 0xFF]) + member[middle + 1 :]
    return member[:middle] if capture.form == "cut" else member


def _remembered(
    snapshot: str, captures: Sequence[Capture], places: dict[str, tuple[str, int, int, str]]
) -> list[Capture]:
    """Return the plain articles of a snapshot, which the next one may see again, each with its record and date."""
    return [
        Capture(
            page.kind,
            page.url,
            page.body,
            coding=page.coding,
            article=page.article,
            earlier=(_identifier(snapshot, page), places[page.url][3]),
        )
        for page in captures
        if page.kind == "article"
    ]


def _plants(
    snapshot: str, captures: Sequence[Capture], places: dict[str, tuple[str, int, int, str]]
) -> Iterator[Plant]:
    """Yield one plant for each cluster, and one for each capture outside of clusters."""
    clusters: dict[str, list[Capture]] = {}
    for capture in captures:
        clusters.setdefault(capture.cluster or capture.url, []).append(capture)
    for members in clusters.values():
        first = members[0]
        yield Plant(
            kind=first.kind,
            snapshot=snapshot,
            urls=tuple(member.url for member in members),
            records=tuple(_identifier(snapshot, member) for member in members),
            expected=EXPECTED[first.kind],
            due=max(1, len(members) - 1),
            places=tuple(places[member.url][:3] for member in members if member.form in DAMAGED),
            counts=first.counts,
            jaccard=first.jaccard,
        )
