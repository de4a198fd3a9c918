"""FineWeb's filters agree with datatrove itself, where the peers' environment is installed."""

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.stages.filter_quality import Params, sift

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
FLOOR = 0.995


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
    for place, name in enumerate(("gopher_repetition", "gopher_quality", "c4", "fineweb")):
        judged = next(sift(iter([batch]), params=Params(profiles=(name,), words="spacy")))
        ours = [reason and reason.partition(":")[2] for reason in judged["reason"].to_pylist()]
        agree = sum(mine == other[place] for mine, other in zip(ours, theirs, strict=True))
        assert agree >= FLOOR * len(texts), name
