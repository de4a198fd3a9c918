"""Evaluation items in documents: found however they are dressed, told by place, and cut without a trace."""

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stages.decontaminate import Params, read_reference, screen
from tests import refining
from tests.documents import documents

STAGE = "decontaminate"
QUESTION = (
    "A farmer has thirty brown hens and every hen lays two eggs a day except on Sunday, "
    "when none of them lays any; how many eggs does he gather in four weeks?"
)
PROSE = "Nothing of this page is in any evaluation set, whatever one may think of its style. " * 3


@pytest.fixture
def quiz(tmp_path: Path) -> str:
    path = tmp_path / "quiz.jsonl"
    items = [
        {"question": QUESTION, "answer": "1440"},
        {"question": "Which river flows through the old town of Ljubljana today?"},
        {"question": "What is it?", "answer": None},
    ]
    path.write_text("\n".join(json.dumps(one) for one in items) + "\n")
    return str(path)


def screened(root: Path, texts: list[str], **params: Any) -> Manifest:
    return refining.refined(root, STAGE, refining.given(root, [documents(texts)]), params)[1]


def rejects(root: Path, manifest: Manifest) -> list[dict[str, Any]]:
    rows = refining.rows(root, manifest, "rejects").to_pylist()
    return [row | {"proof": json.loads(row["evidence"])} for row in rows]


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def test_planted_items_are_found_at_the_documented_sensitivity(tmp_path: Path, shared_data: Path) -> None:
    planted = read(shared_data / "truth/contamination-planted.jsonl.gz")
    sets = {name: str(shared_data / f"benchmarks/{name}.jsonl.gz") for name in ("gsm8k-test", "humaneval")}
    made = screened(tmp_path, [one["text"] for one in planted], benchmarks=sets)
    hits = {row["offset"]: row["proof"]["hits"] for row in rejects(tmp_path, made)}
    missed = [
        one for at, one in enumerate(planted) if one["kind"] not in {"clean", "short-fragment"} and at not in hits
    ]
    assert [one["kind"] for one in missed] == ["prefix60"]
    assert missed[0]["inserted_words"] < 13
    for at, one in enumerate(planted):
        if one["kind"] in {"clean", "short-fragment"}:
            assert at not in hits
        elif at in hits:
            number = int(one["item"].removeprefix("HumanEval/"))
            assert (one["benchmark"], number) in {(hit["benchmark"], hit["item"]) for hit in hits[at]}
            start, end = hits[at][0]["spans"][0]
            assert one["text"][start:end] in one["inserted"]
    by_benchmark = Counter("+".join(sorted({hit["benchmark"] for hit in one})) for one in hits.values())
    assert made.metrics["rejects"]["contaminated_by"]["bins"] == by_benchmark


def test_pages_about_other_things_are_not_touched(tmp_path: Path, shared_data: Path) -> None:
    texts = [one["text"] for one in read(shared_data / "text/peps.jsonl.gz")]
    names = ("gsm8k-test", "humaneval", "mmlu-test-part1")
    made = screened(
        tmp_path, texts, benchmarks={name: str(shared_data / f"benchmarks/{name}.jsonl.gz") for name in names}
    )
    assert made.rows == len(texts)
    assert made.rejected == {}


@pytest.mark.parametrize(
    "dress",
    [
        str.upper,
        lambda text: text.replace(" ", "\n\t "),
        lambda text: text.replace(",", " --").replace(";", "..."),
        lambda text: text.replace("a", "\uff41"),
        lambda text: " ".join(text.split()[3:20]),
    ],
)
def test_dress_does_not_hide_an_item(tmp_path: Path, quiz: str, dress: Any) -> None:
    made = screened(tmp_path, [PROSE + dress(QUESTION) + PROSE, PROSE], benchmarks={"quiz": quiz})
    assert made.rejected == {"decontaminate:contaminated": 1}
    (row,) = rejects(tmp_path, made)
    (hit,) = row["proof"]["hits"]
    assert (hit["benchmark"], hit["item"], hit["field"]) == ("quiz", 0, "question")
    assert PROSE not in row["evidence"]


def test_short_items_match_whole_and_the_shortest_never(tmp_path: Path, quiz: str) -> None:
    texts = [
        "So: which river flows through the old town of Ljubljana today? I forgot.",
        "which river flows through the old town of Ljubljana",
        "What is it? 1440",
    ]
    made = screened(tmp_path, texts, benchmarks={"quiz": quiz})
    assert [row["text"] for row in rejects(tmp_path, made)] == texts[:1]
    assert screened(tmp_path, texts, benchmarks={"quiz": quiz}, min_words=11).rejected == {}


def test_cutting_takes_the_item_and_leaves_the_rest(tmp_path: Path, quiz: str) -> None:
    text = f"Früher: {PROSE}«{QUESTION}» {PROSE}"
    made = screened(tmp_path, [text, PROSE], benchmarks={"quiz": quiz}, action="cut")
    dirty, clean = refining.rows(tmp_path, made).to_pylist()
    assert dirty["text"] == f"Früher: {PROSE}«?» {PROSE}"
    assert dirty["chars"] == len(dirty["text"])
    assert dirty["contaminated_by"] == "quiz"
    start, end = json.loads(dirty["cut_evidence"])["hits"][0]["spans"][0]
    assert text[start:end] == QUESTION.removesuffix("?")
    assert (clean["text"], clean["contaminated_by"], clean["cut_evidence"]) == (PROSE, None, None)
    assert made.rejected == {}


def test_overlap_asks_for_a_share_of_the_item(tmp_path: Path, quiz: str) -> None:
    half = " ".join(QUESTION.split()[:18])
    assert screened(tmp_path, [half], benchmarks={"quiz": quiz}, overlap=0.2).rows == 0
    assert screened(tmp_path, [half], benchmarks={"quiz": quiz}, overlap=0.9).rows == 1


def test_phrases_of_the_template_are_no_evidence(tmp_path: Path) -> None:
    template = "Answer the following question by giving the letter of the one correct choice below"
    path = tmp_path / "quiz.jsonl"
    path.write_text("\n".join(json.dumps({"prompt": f"{template} {n}"}) for n in range(11)))
    text = [f"{template}, please"]
    assert screened(tmp_path, text, benchmarks={"quiz": str(path)}).rows == 1
    assert screened(tmp_path, text, benchmarks={"quiz": str(path)}, max_items=0).rows == 0


def test_no_benchmark_screens_nothing(tmp_path: Path) -> None:
    made = screened(tmp_path, [PROSE, ""])
    assert made.rows == 2
    assert refining.rows(tmp_path, made).column("contaminated_by").null_count == 2


def test_a_broken_benchmark_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "quiz.jsonl"
    path.write_text('{"question": "fine"}\n{"question": \n')
    with pytest.raises(RecipeError, match=r"quiz\.jsonl line 2"):
        read_reference(Params(benchmarks={"quiz": str(path)}))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), cuts=st.sampled_from([1, 2, 5, 100]))
def test_hits_are_those_of_a_plain_search(tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: int) -> None:
    draws = random.Random(seed)
    items = [[draws.choice("abcdef") for _ in range(draws.randrange(2, 12))] for _ in range(5)]
    texts = [[draws.choice("abcdef") for _ in range(draws.randrange(40))] for _ in range(10)]
    path = tmp_path_factory.mktemp("quiz") / "quiz.jsonl"
    path.write_text("\n".join(json.dumps({"text": " ".join(one)}) for one in items))
    params = Params(benchmarks={"quiz": str(path)}, ngram=5, min_words=3, max_items=0)
    wanted = {
        tuple(one[at : at + min(5, len(one))]) for one in items if len(one) >= 3 for at in range(max(1, len(one) - 4))
    }
    expected = [
        any(tuple(one[at : at + n]) in wanted for n in (3, 4, 5) for at in range(len(one) - n + 1)) for one in texts
    ]
    batches = documents([" ".join(one) for one in texts]).to_batches(max_chunksize=cuts)
    found = pa.Table.from_batches(list(screen(iter(batches), params=params)))
    assert [reason is not None for reason in found.column("reason").to_pylist()] == expected
