"""FineWeb's filters agree with datatrove itself, where the peers' environment is installed; floors only go up."""

# ruff: noqa: SIM905 -- lists of words read best as text

import json
import random
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages import filter_url
from pipeline_tasks.stages.filter_quality import Params, filter_texts
from tests.golden.test_ratchet import hold

ROOT = Path(__file__).parents[2]
PEER = ROOT / ".refinery" / "peers" / "bin" / "python"
CODE = """
import json, sys
from datatrove.data import Document
from datatrove.pipeline.filters import C4QualityFilter, FineWebQualityFilter, GopherQualityFilter
from datatrove.pipeline.filters import GopherRepetitionFilter
judges = GopherRepetitionFilter(), GopherQualityFilter(), FineWebQualityFilter()
judges += (C4QualityFilter(filter_no_terminal_punct=False),)
for line in sys.stdin:
    documents = [Document(text=json.loads(line), id="0") for _ in judges]
    outcomes = [judge.filter(document) for judge, document in zip(judges, documents)]
    reasons = [outcome[1].removeprefix("gopher_") if isinstance(outcome, tuple) else None for outcome in outcomes]
    names = {"char_dup_ratio": "char_duplicates_ratio", "list_ratio": "new_line_ratio"}
    reasons = [names.get(reason, reason) for reason in reasons]
    print(json.dumps([reasons, documents[-1].text]))
"""
FILTERS = ("gopher_repetition", "gopher_quality", "fineweb", "c4")
Verdicts = list[tuple[list[str | None], str]]


def theirs(texts: list[str]) -> Verdicts:
    """The first reason of each of FILTERS per text, and the text as C4 leaves it, by datatrove."""
    if not PEER.exists():
        pytest.skip("no environment of peers: benchmarks/agreement.py makes it")
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    answer = subprocess.run([str(PEER), "-c", CODE], input=lines, check=True, capture_output=True, text=True)
    return [tuple(json.loads(line)) for line in answer.stdout.splitlines()]


def ours(texts: list[str]) -> Verdicts:
    """The same by us."""
    batch = pa.record_batch(
        {
            "text": pa.array(texts, pa.large_string()),
            "chars": pa.nulls(len(texts), pa.int64()),
            "language": ["en"] * len(texts),
        }
    )
    reasons = []
    for name in FILTERS:
        judged = next(
            filter_texts(iter([batch]), params=Params(profiles=(name,), words="spacy", edit=True, mend=False))
        )
        reasons.append([reason and reason.partition(":")[2] for reason in judged["reason"].to_pylist()])
    return [(list(row), text) for row, text in zip(zip(*reasons, strict=True), judged["text"].to_pylist(), strict=True)]


@pytest.mark.slow
def test_verdicts_are_datatroves(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from documents import english

    texts = english(shared_data / "wet", tmp_path)["text"].to_pylist()[:300]
    pairs = list(zip(ours(texts), theirs(texts), strict=True))
    hold(
        {
            f"agreement.{name}": sum(mine[0][place] == other[0][place] for mine, other in pairs) / len(texts)
            for place, name in enumerate(FILTERS)
        }
    )


ENDS = ("\n", "\n", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
BLANKS = (" ",) * 9 + ("  ", "\t", "\xa0", "\u3000", "\x1f", "\u200b", "\ufeff")
NOTICES = ("JavaScript", "Terms of USE", "privacy policy", "uses  cookies", "use of cookies", "javascr\u0130pt")
WORDS = (
    *"the be to of and that have with a I rivers extraordinarily they\u2019ve can't U.S. e.g. (i.e. 9am 20\u00b0C.) 5km".split(),
    *'- -- \u2022 * # ## ... \u2026 .. . ! ?! \u3002 \u0964 \u061f \u17d5 \u203c " \u201d ) ] ,'.split(),
    *"[1] [] [edit] [Edit] [citation needed] [\u0663] [1a] 1,000 3.5 \u00bd http://a.com/x-y 8.8.8.8/a-b a@b.co".split(),
    *"\u4e2d\u6587 \u0915\u094d\u0937\u093f \u0639\u0631\u0628\u064a e\u0301 \U0001f642 \U0001f972so a\U0001f468\u200d\U0001f680 :-) so\u2026:-) \0".split(),
    "x" * 1000,
    "x" * 1001,
    "citation [citation needed]",
)


def odd_text(draw: random.Random) -> str:
    """A few lines, some repeated, of ordinary and odd words between odd white space; one rule of C4 at most drops it."""
    words = (*WORDS, *WORDS[:8] * 9, *NOTICES, draw.choice(("Lorem Ipsum", "{", "")))
    spaces, ends = draw.choice((BLANKS, " ")), draw.choice((ENDS, "\n", ("\n\n",)))
    lines: list[str] = []
    for _ in range(draw.choice((1, 2, 4, 9, 20))):
        said = draw.choice(lines) if lines and draw.random() < 0.2 else None
        length = draw.choice((0, 1, 2, 3, 3, 5, 9, 14))
        end = draw.choice((".", ".", "!", "...", "\u2026 ", "", " [1] [2]"))
        lines.append(said or draw.choice(spaces).join(draw.choice(words) for _ in range(length)) + end)
    return "".join(line + draw.choice(ends) for line in lines) + draw.choice(("", "the end of it"))


@pytest.mark.slow
def test_odd_texts_are_judged_and_edited_as_by_datatrove() -> None:
    draw = random.Random(20)
    texts = ["", " ", "\n", ".", "\u2028", *(odd_text(draw) for _ in range(1500))]
    verdicts, wanted = ours(texts), theirs(texts)
    assert [row for row in zip(texts, verdicts, wanted, strict=True) if row[1] != row[2]] == []
    reasons = {why for reasons, _ in wanted for why in reasons}
    assert {
        None,
        "curly_bracket",
        "lorem_ipsum",
        "too_few_sentences",
        "char_duplicates_ratio",
        "dup_line_frac",
    } < reasons


URLS = """
import json, os, sys
os.environ["TLDEXTRACT_PUBLIC_SUFFIX_LIST_URLS"] = ""
from datatrove.data import Document
from datatrove.pipeline.filters import URLFilter
lists, urls = json.load(sys.stdin)
judge = URLFilter(use_integrated_lists=False, **lists)
outcomes = [judge.filter(Document(text="", id="0", metadata={"url": url})) for url in urls]
print(json.dumps([outcome[1] if isinstance(outcome, tuple) else None for outcome in outcomes]))
"""


@pytest.mark.slow
def test_urls_are_rejected_as_by_datatrove(tmp_path: Path) -> None:
    if not PEER.exists():
        pytest.skip("no environment of peers: benchmarks/agreement.py makes it")
    lists = {
        "domains": ["evil.co.uk", "bad.blogspot.com", "sub.example.com", "www.ck", "kobe.jp", "a.kobe.jp"],
        "urls": ["http://example.com/x", "http://example.com/y/"],
        "hard_words": ["casino", "Top-Ten"],
        "soft_words": ["free", "bet", "cam"],
        "subwords": ["sex shop", "2girls"],
    }
    hosts = ["evil.co.uk", "www.evil.co.uk", "Evil.co.uk", "evil.co.uk.", "bad.blogspot.com", "x.bad.blogspot.com"]
    hosts += ["sub.example.com", "www.ck", "x.www.ck", "city.kobe.jp", "a.kobe.jp", "x.a.kobe.jp", "evil.co.uk:80"]
    hosts += ["1.2.3.4", "localhost", "co.uk", "me@evil.co.uk", "bücher.de", "free.cam", "example.com"]
    paths = ["", "/", "/x", "/y/", "/y", "?casino", "/CASINO/", "/casino1", "/topten", "/free/bet", "/free-free"]
    paths += ["/essex-shop", "/Sex/SHOP#top", "/2/girls", "/free/bet?casino", "/é-cam-é/bet"]
    urls = [f"http://{host}{path}" for host in hosts for path in paths]
    for name, items in lists.items():
        (tmp_path / name).write_text("\n".join(items))
    params = filter_url.Params(matching="exact", **{name: FilePath(str(tmp_path / name)) for name in lists})
    (out,) = filter_url.screen(iter([pa.record_batch({"url": urls})]), params=params)
    ours = [why and why.partition(":")[2] for why in out["reason"].to_pylist()]
    names = ("extra_domains", "extra_urls", "banned_words", "soft_banned_words", "banned_subwords")
    request = json.dumps([dict(zip(names, lists.values(), strict=True)), urls])
    answer = subprocess.run([str(PEER), "-c", URLS], input=request, check=True, capture_output=True, text=True)
    theirs = json.loads(answer.stdout)
    assert {why for why in theirs if why} == {why.partition(":")[2] for why in filter_url.STAGE.reasons[1:]}
    assert list(zip(urls, ours, strict=True)) == list(zip(urls, theirs, strict=True))
