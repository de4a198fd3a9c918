"""FineWeb's filters agree with datatrove itself, where the peers' environment is installed; floors only go up."""

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages import filter_url
from pipeline_tasks.stages.filter_quality import Params, sift
from tests.test_ratchet import hold

ROOT = Path(__file__).parent.parent
PEER = ROOT / ".refinery" / "peers" / "bin" / "python"
CODE = """
import json, sys
from datatrove.data import Document
from datatrove.pipeline.filters import C4QualityFilter, FineWebQualityFilter, GopherQualityFilter
from datatrove.pipeline.filters import GopherRepetitionFilter
judges = GopherRepetitionFilter(), GopherQualityFilter(), C4QualityFilter(filter_no_terminal_punct=False)
judges += (FineWebQualityFilter(),)
for line in sys.stdin:
    outcomes = [judge.filter(Document(text=json.loads(line), id="0")) for judge in judges]
    print(json.dumps([one[1].removeprefix("gopher_") if isinstance(one, tuple) else None for one in outcomes]))
"""


@pytest.mark.slow
def test_verdicts_are_datatroves(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not PEER.exists():
        pytest.skip("no environment of peers: benchmarks/agreement.py makes it")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from documents import english

    texts = english(shared_data / "wet", tmp_path)["text"].to_pylist()[:300]
    asked = "".join(json.dumps(text) + "\n" for text in texts)
    answer = subprocess.run([str(PEER), "-c", CODE], input=asked, check=True, capture_output=True, text=True)
    theirs = [json.loads(line) for line in answer.stdout.splitlines()]
    batch = pa.record_batch(
        {
            "text": pa.array(texts, pa.large_string()),
            "chars": pa.nulls(len(texts), pa.int64()),
            "language": ["en"] * len(texts),
        }
    )
    measured: dict[str, float] = {}
    for place, name in enumerate(("gopher_repetition", "gopher_quality", "c4", "fineweb")):
        judged = next(sift(iter([batch]), params=Params(profiles=(name,), words="spacy")))
        ours = [reason and reason.partition(":")[2] for reason in judged["reason"].to_pylist()]
        agree = sum(mine == other[place] for mine, other in zip(ours, theirs, strict=True))
        measured[f"agreement.{name}"] = agree / len(texts)
    hold(measured)


URLS = """
import json, os, sys
os.environ["TLDEXTRACT_PUBLIC_SUFFIX_LIST_URLS"] = ""
from datatrove.data import Document
from datatrove.pipeline.filters import URLFilter
lists, urls = json.load(sys.stdin)
judge = URLFilter(use_integrated_lists=False, **lists)
outcomes = [judge.filter(Document(text="", id="0", metadata={"url": url})) for url in urls]
print(json.dumps([one[1] if isinstance(one, tuple) else None for one in outcomes]))
"""


@pytest.mark.slow
def test_urls_are_set_aside_as_by_datatrove(tmp_path: Path) -> None:
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
    asked = json.dumps([dict(zip(names, lists.values(), strict=True)), urls])
    answer = subprocess.run([str(PEER), "-c", URLS], input=asked, check=True, capture_output=True, text=True)
    theirs = json.loads(answer.stdout)
    assert {why for why in theirs if why} == {why.partition(":")[2] for why in filter_url.STAGE.fires[1:]}
    assert list(zip(urls, ours, strict=True)) == list(zip(urls, theirs, strict=True))
