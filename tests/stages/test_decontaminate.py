"""Evaluation items in documents: matched in any dress, named by file and line, and cut without a trace."""

import gzip
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stages.decontaminate import MOST_LINE, Params, bounds_of, inspect, read_reference, screen
from pipeline_tasks.text.near import evaluation_index, ngrams, shingles, sketches
from pipeline_tasks.text.near.matches import Bounds, find
from tests import refining
from tests.documents import documents
from tests.examples import few_examples

STAGE = "decontaminate"
QUESTION = (
    "A farmer has thirty brown hens and every hen lays two eggs a day except on Sunday, "
    "when none of them lays any; how many eggs does he gather in four weeks?"
)
RAIN = "What falls on the hills above the town all through the month of November?"
PROSE = "Nothing of this page is in any evaluation set, whatever one may think of its style. " * 3


@pytest.fixture
def quiz(tmp_path: Path) -> str:
    path = tmp_path / "quiz.jsonl"
    items = [
        {"question": QUESTION, "answer": "1440"},
        {"question": "Which river flows through the old town of Ljubljana today?"},
        {"question": "What is it?", "answer": None},
    ]
    path.write_text("\n".join(json.dumps(item) for item in items) + "\n")
    return str(path)


def screened(root: Path, texts: list[str], **params: Any) -> Manifest:
    return refining.refined(root, STAGE, refining.commit_parent(root, [documents(texts)]), params)[1]


def rejects(root: Path, manifest: Manifest) -> list[dict[str, Any]]:
    rows = refining.rows(root, manifest, "rejects").to_pylist()
    return [row | {"proof": json.loads(row["evidence"])} for row in rows]


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("method", "partial"), [("ngram", 19), ("sampled", 20), ("both", 20)])
def test_planted_items_are_found_at_the_documented_sensitivity(
    method: str, partial: int, tmp_path: Path, shared_data: Path
) -> None:
    planted = read(shared_data / "truth/contamination-planted.jsonl.gz")
    sets = {name: str(shared_data / f"benchmarks/{name}.jsonl.gz") for name in ("gsm8k-test", "humaneval")}
    manifest = screened(tmp_path, [item["text"] for item in planted], benchmarks=sets, method=method)
    hits = {row["offset"]: row["proof"]["hits"] for row in rejects(tmp_path, manifest)}
    kinds = Counter(item["kind"] for at, item in enumerate(planted) if at in hits)
    assert [kinds[kind] for kind in ("verbatim", "case-space-punct", "prefix60")] == [20, 20, partial]
    assert kinds["first-half-only-13-words"] == 20 or method == "sampled"
    assert [kinds[kind] for kind in ("clean", "short-fragment")] == [0, 0]
    for at, document_hits in hits.items():
        number = int(planted[at]["item"].removeprefix("HumanEval/"))
        assert (planted[at]["benchmark"], number) in {(hit["benchmark"], hit["item"]) for hit in document_hits}
        assert {hit["part"] for hit in document_hits} <= {"question", "answer"}
        start, end = document_hits[0]["spans"][0]
        assert planted[at]["text"][start:end] in planted[at]["inserted"]
    by_benchmark = Counter(
        "+".join(sorted({hit["benchmark"] for hit in document_hits})) for document_hits in hits.values()
    )
    assert manifest.metrics["rejects"]["contaminated_by"]["bins"] == by_benchmark


def edited(text: str, each: int) -> str:
    """Return the text with every so-manieth word another one."""
    return " ".join("heron" if at % each == each // 2 else word for at, word in enumerate(text.split()))


def test_edited_items_are_found_at_the_documented_sensitivity(shared_data: Path) -> None:
    questions = [item["question"] for item in read(shared_data / "benchmarks/gsm8k-test.jsonl.gz")]
    pages = [item["text"] for item in read(shared_data / "text/peps.jsonl.gz")]
    params = Params(benchmarks={"gsm8k-test": str(shared_data / "benchmarks/gsm8k-test.jsonl.gz")})
    reference, draws = read_reference(params), random.Random(7)
    texts = []
    for question in questions:
        page = draws.choice(pages)
        at = draws.randrange(len(page))
        texts.append(f"{page[:at]} {edited(question, 10)} {page[at:]}")
    matches_by_row = inspect(pa.array(texts, pa.large_string()), reference, bounds_of(params))
    right = [at for at, matches in matches_by_row.items() if any(match.part.item == at for match in matches)]
    assert len(right) >= 0.95 * len(questions)


def test_pages_about_other_things_are_not_touched(tmp_path: Path, shared_data: Path) -> None:
    texts = [document["text"] for document in read(shared_data / "text/peps.jsonl.gz")]
    names = ("gsm8k-test", "humaneval", "mmlu-test-part1")
    manifest = screened(
        tmp_path, texts, benchmarks={name: str(shared_data / f"benchmarks/{name}.jsonl.gz") for name in names}
    )
    assert manifest.rows == len(texts)
    assert manifest.rejected == {}


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
    manifest = screened(tmp_path, [PROSE + dress(QUESTION) + PROSE, PROSE], benchmarks={"quiz": quiz})
    assert manifest.rejected == {"decontaminate:contaminated": 1}
    (row,) = rejects(tmp_path, manifest)
    assert {hit["method"] for hit in row["proof"]["hits"]} >= {"ngram"}
    for hit in row["proof"]["hits"]:
        assert (hit["benchmark"], hit["item"], hit["part"], hit["field"]) == ("quiz", 0, "question", "question")
    assert PROSE not in row["evidence"]


def test_short_items_match_whole_and_the_shortest_never(tmp_path: Path, quiz: str) -> None:
    texts = [
        "So: which river flows through the old town of Ljubljana today? I forgot.",
        "which river flows through the old town of Ljubljana",
        "What is it? 1440",
    ]
    manifest = screened(tmp_path, texts, benchmarks={"quiz": quiz})
    assert [row["text"] for row in rejects(tmp_path, manifest)] == texts[:1]
    assert screened(tmp_path, texts, benchmarks={"quiz": quiz}, min_words=11).rejected == {}


def test_cutting_takes_the_item_and_leaves_the_rest(tmp_path: Path, quiz: str) -> None:
    text = f"Früher: {PROSE}«{QUESTION}» {PROSE}"
    manifest = screened(tmp_path, [text, PROSE], benchmarks={"quiz": quiz}, action="cut")
    dirty, clean = refining.rows(tmp_path, manifest).to_pylist()
    assert dirty["text"] == f"Früher: {PROSE}«?» {PROSE}"
    assert dirty["chars"] == len(dirty["text"])
    assert dirty["contaminated_by"] == "quiz"
    start, end = json.loads(dirty["cut_evidence"])["hits"][0]["spans"][0]
    assert text[start:end] == QUESTION.removesuffix("?")
    assert (clean["text"], clean["contaminated_by"], clean["cut_evidence"]) == (PROSE, None, None)
    assert manifest.rejected == {}


def test_overlap_asks_for_a_share_of_the_item(tmp_path: Path, quiz: str) -> None:
    half = " ".join(QUESTION.split()[:18])
    assert screened(tmp_path, [half], benchmarks={"quiz": quiz}, method="ngram", overlap=0.2).rows == 0
    assert screened(tmp_path, [half], benchmarks={"quiz": quiz}, method="ngram", overlap=0.9).rows == 1


def test_phrases_of_the_template_are_no_evidence(tmp_path: Path) -> None:
    template = "Answer the following question by giving the letter of the one correct choice below"
    path = tmp_path / "quiz.jsonl"
    path.write_text("\n".join(json.dumps({"prompt": f"{template} {n}"}) for n in range(101)))
    text = [f"{template}, please"]
    assert screened(tmp_path, text, benchmarks={"quiz": str(path)}).rows == 1
    assert screened(tmp_path, text, benchmarks={"quiz": str(path)}, max_items=0).rows == 0


def test_half_of_a_passage_that_dozens_of_items_share_is_found(tmp_path: Path) -> None:
    path = tmp_path / "quiz.jsonl"
    items = [{"input": f"{QUESTION} Which word has {n} letters?", "target": "none"} for n in range(60)]
    path.write_text("\n".join(map(json.dumps, items)))
    half = [" ".join(QUESTION.split()[:18])]
    assert screened(tmp_path, half, benchmarks={"quiz": str(path)}).rows == 0
    assert screened(tmp_path, half, benchmarks={"quiz": str(path)}, max_items=10).rows == 1


def test_an_edited_item_is_found_whole(tmp_path: Path, quiz: str) -> None:
    text = PROSE + edited(QUESTION, 9) + " " + PROSE
    assert screened(tmp_path, [text], benchmarks={"quiz": quiz}, method="ngram").rows == 1
    (row,) = rejects(tmp_path, screened(tmp_path, [text], benchmarks={"quiz": quiz}, method="sampled"))
    (hit,) = row["proof"]["hits"]
    (span,) = hit["spans"]
    assert len(text[span[0] : span[1]]) > 0.7 * len(QUESTION)
    assert 0.4 <= hit["score"] < 0.8


@pytest.fixture
def facts(tmp_path: Path) -> str:
    path = tmp_path / "facts.jsonl"
    items = [
        {"question": "In which year was the tower of the old harbor finished?", "choices": ["1889", "1901"]},
        {"question": "Who of them kept the lamp?", "answer": "The widow of the second pilot, until her sons were grown",
         "passage": PROSE + " The lamp was kept by the widow of the second pilot."},
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, items)))
    return str(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Quiz. In which year was the tower of the old harbor finished? A: 1901.", {("question", 0)}),
        ("Quiz. In which year was the tower of the old harbor finished? Nobody told me.", set()),
        ("In which year was the tower of the old harbor finished? " + "And so on. " * 40 + "1901", set()),
        (
            "Who of them kept the lamp? " + "The widow of the second pilot, until her sons were grown.",
            {("question", 1)},
        ),
        (PROSE, set()),
    ],
)
def test_a_short_question_needs_its_answer(text: str, expected: set[tuple[str, int]], facts: str) -> None:
    params = Params(benchmarks={"facts": facts}, method="sampled", score=0.6, min_words=5)
    matches = inspect(pa.array([text], pa.large_string()), read_reference(params), bounds_of(params))
    assert {(match.part.part, match.part.item) for match in matches.get(0, [])} == expected


def test_an_answer_supports_every_question_that_it_answers(tmp_path: Path, facts: str) -> None:
    bridge = "How many arches has the bridge below the old mill?"
    path = tmp_path / "more.jsonl"
    path.write_text(json.dumps({"question": bridge, "answer": "1901"}) + "\n" + json.dumps({"question": RAIN}))
    params = Params(benchmarks={"facts": facts, "more": str(path)}, method="sampled", score=0.6)
    tower = "In which year was the tower of the old harbor finished?"
    page = " ".join([tower, "1901", "Something else, at length. " * 30, bridge, "1901"])
    (matches,) = inspect(pa.array([page]), read_reference(params), bounds_of(params)).values()
    assert [(match.part.benchmark, len(match.spans)) for match in matches] == [("facts", 2), ("more", 2)]


def test_every_part_counts_by_itself_for_ngrams(tmp_path: Path, facts: str) -> None:
    answer = "The widow of the second pilot, until her sons were grown"
    manifest = screened(tmp_path, [answer, PROSE], benchmarks={"facts": facts}, method="ngram")
    hits = [row["proof"]["hits"][0] for row in rejects(tmp_path, manifest)]
    assert [(hit["item"], hit["part"], hit["field"]) for hit in hits] == [(1, "answer", "answer")]
    assert manifest.rows == 1


def test_a_passage_that_is_all_of_its_item_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "passages.jsonl"
    path.write_text(json.dumps({"passage": PROSE}))
    assert screened(tmp_path, [PROSE], benchmarks={"passages": str(path)}).rows == 0


def test_an_item_without_a_text_is_refused_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "quiz.jsonl"
    path.write_text("\n".join(map(json.dumps, [{"question": QUESTION}, {"question": {"stem": RAIN}}])))
    with pytest.raises(RecipeError, match=r"quiz\.jsonl line 2 has no text"):
        screened(tmp_path, [PROSE], benchmarks={"quiz": str(path)})
    named = {"benchmarks": {"quiz": str(path)}, "questions": ["question", "question.stem"]}
    assert screened(tmp_path, [QUESTION, RAIN, PROSE], **named).rows == 1


def test_words_that_a_cut_would_join_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "quiz.jsonl"
    path.write_text(json.dumps({"text": "天地玄黄宇宙洪荒日月盈昃辰宿列张"}))
    manifest = screened(
        tmp_path, ["before天地玄黄宇宙洪荒日月盈昃辰宿列张after"], benchmarks={"quiz": str(path)}, action="cut"
    )
    assert refining.rows(tmp_path, manifest).column("text").to_pylist() == ["before after"]


def test_what_is_known_of_a_benchmark_does_not_depend_on_the_others(quiz: str, facts: str) -> None:
    texts = pa.array([PROSE + edited(QUESTION, 9), QUESTION, PROSE], pa.large_string())
    alone, broadcast = (
        Params(benchmarks=benchmarks) for benchmarks in ({"quiz": quiz}, {"facts": facts, "quiz": quiz})
    )
    outcomes = [inspect(texts, read_reference(params), bounds_of(params)) for params in (alone, broadcast)]
    kept = {row: [match for match in matches if match.part.benchmark == "quiz"] for row, matches in outcomes[1].items()}
    assert outcomes[0] == {row: matches for row, matches in kept.items() if matches}


def test_no_benchmark_screens_nothing(tmp_path: Path) -> None:
    manifest = screened(tmp_path, [PROSE, ""])
    assert manifest.rows == 2
    assert refining.rows(tmp_path, manifest).column("contaminated_by").null_count == 2


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"min_words": 14}, "min_words 14"),
        ({"gram": 0}, "gram 0"),
        ({"score": 0.0}, "score 0.0"),
        ({"benchmarks": {"a+b": "x"}}, "'a+b'"),
    ],
)
def test_params_that_make_no_sense_are_refused(params: dict[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(named)):
        Params(**params)


def test_a_benchmark_of_other_fields_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "quiz.jsonl"
    path.write_text(json.dumps({"stem": QUESTION}))
    with pytest.raises(RecipeError, match=re.escape(str(path))):
        read_reference(Params(benchmarks={"quiz": str(path)}))
    params = Params(benchmarks={"quiz": str(path)}, questions=("stem",))
    assert [part.field for part in read_reference(params).parts] == ["stem"]


@pytest.mark.parametrize(
    "line",
    [
        b"17",
        b'["Which river runs through the old town of Brisk?"]',
        b"null",
        b'{"question": "cut',
        b'{"question": "caf\xe9"}',
        b'{"question": "%s"}' % (b"x" * MOST_LINE),
    ],
    ids=["number", "list", "null", "cut", "latin-1", "long"],
)
def test_every_line_of_a_benchmark_is_searched_or_refused(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "quiz.jsonl"
    sound = b"\xef\xbb\xbf" + json.dumps({"question": QUESTION}).encode() + b"\n\n"
    path.write_bytes(sound)
    assert len(read_reference(Params(benchmarks={"quiz": str(path)})).parts) == 1
    path.write_bytes(sound + line + b"\n")
    with pytest.raises(RecipeError, match=re.escape(f"{path} line 3 ")):
        read_reference(Params(benchmarks={"quiz": str(path)}))


def test_a_broken_benchmark_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "quiz.jsonl"
    path.write_text('{"question": "fine"}\n{"question": \n')
    with pytest.raises(RecipeError, match=re.escape(f"{path} line 2 ")):
        read_reference(Params(benchmarks={"quiz": str(path)}))


@few_examples
@given(seed=st.integers(0, 10**6), cuts=st.sampled_from([1, 2, 5, 100]))
def test_hits_are_those_of_a_plain_search(tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: int) -> None:
    draws = random.Random(seed)
    items = [[draws.choice("abcdef") for _ in range(draws.randrange(2, 12))] for _ in range(5)]
    texts = [[draws.choice("abcdef") for _ in range(draws.randrange(40))] for _ in range(10)]
    path = tmp_path_factory.mktemp("quiz") / "quiz.jsonl"
    path.write_text("\n".join(json.dumps({"text": " ".join(words)}) for words in items))
    params = Params(benchmarks={"quiz": str(path)}, ngram=5, min_words=3, max_items=0)
    wanted = {
        tuple(words[at : at + min(5, len(words))])
        for words in items
        if len(words) >= 3
        for at in range(max(1, len(words) - 4))
    }
    expected = [
        any(tuple(words[at : at + n]) in wanted for n in (3, 4, 5) for at in range(len(words) - n + 1))
        for words in texts
    ]
    batches = documents([" ".join(words) for words in texts]).to_batches(max_chunksize=cuts)
    screened_rows = pa.Table.from_batches(list(screen(iter(batches), params=params)))
    assert [reason is not None for reason in screened_rows.column("reason").to_pylist()] == expected


# --- Sketches -------------------------------------------------------------------------------------------------


def test_sketches_outlive_releases() -> None:
    texts = pa.array(["The quick brown fox jumps over the lazy dog and runs", "Zu kurz", None, "天地玄黄宇宙"])
    assert sketches.sample(texts, 5, 4).to_pylist() == [[1008647398, 1906325066], [], [], [2997060932]]


def test_long_texts_are_sketched_as_short_ones_are() -> None:
    draws = random.Random(5)
    words = [draws.choice(["rain", "on", "the", "harbor", "naïve", "天地", "x\u00ady"]) for _ in range(400_000)]
    text = " ".join(words) + "  " + "word" * 300_000 + "\n" + " ".join(words[:9])
    (whole,) = sketches.sample(pa.array([text], pa.large_string()), 5, 4).to_pylist()
    hashes = np.array([word_hash for word_hash, _ in shingles.words(text)], np.uint64)
    grams = np.zeros_like(hashes)
    count = ngrams.ngram_hashes(hashes, len(hashes), 5, grams)
    assert len(text.encode()) > 2.5 * sketches.PIECE
    assert whole == sketches.prints_of(grams[:count:4]).tolist()


def test_kept_documents_are_sketched_in_their_order(tmp_path: Path, quiz: str) -> None:
    texts = [PROSE, QUESTION, f"{PROSE} {QUESTION}", "short"]
    manifest = screened(tmp_path, texts, benchmarks={"quiz": quiz}, action="cut")
    kept = refining.rows(tmp_path, manifest).column("text").combine_chunks()
    assert (
        refining.rows(tmp_path, manifest, "sketches").column("sketch").to_pylist()
        == sketches.sample(kept, 5, 4).to_pylist()
    )
    assert [shard.rows for shard in manifest.history_shards] == [shard.rows for shard in manifest.shards]
    assert screened(tmp_path, texts, benchmarks={"quiz": quiz}, sketch=False).history == {"sketches": ()}


def test_the_past_is_no_part_of_what_is_screened(tmp_path: Path, quiz: str) -> None:
    monday = refining.commit_parent(tmp_path, [documents([PROSE])], "monday")
    tuesday = refining.commit_parent(tmp_path, [documents([QUESTION, PROSE])], "tuesday")
    path, _ = refining.refined(tmp_path, STAGE, monday, {"benchmarks": {"quiz": quiz}})
    alone = refining.refined(tmp_path, STAGE, tuesday, {"benchmarks": {"quiz": quiz}})
    assert refining.refined(tmp_path, STAGE, tuesday, {"benchmarks": {"quiz": quiz}}, history=[path]) == alone


WORDS = st.lists(st.sampled_from("abcdefghij"), min_size=0, max_size=40)


@given(before=WORDS, run=st.lists(st.sampled_from("klmnopqrst"), min_size=8, max_size=30), after=WORDS, tail=WORDS)
def test_no_run_of_min_words_escapes_its_sample(
    before: list[str], run: list[str], after: list[str], tail: list[str]
) -> None:
    reference = evaluation_index.index(
        [evaluation_index.Text("quiz", 0, "question", "text", " ".join([*run, *tail]))],
        evaluation_index.Rules(max_items=0),
    )
    planted = run if not tail or len(run) > 12 else [*run, *tail]
    text = pa.array([" ".join([*before, *planted, *after])], pa.large_string())
    assert sketches.sift(sketches.sample(text, 5, 4), reference.sieve).tolist() == [True]
    matches = find(text, reference, Bounds(("ngram",)))
    assert len(matches) == (len(planted) >= min(13, len(run) + len(tail)))


@few_examples
@given(seed=st.integers(0, 10**6), cuts=st.sampled_from([1, 3, 100]), action=st.sampled_from(["drop", "cut"]))
def test_cutting_batches_and_turning_rows_changes_no_hit(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: int, action: Any
) -> None:
    draws = random.Random(seed)
    items = [" ".join(draws.choice("abcdefghijkl") for _ in range(draws.randrange(1, 40))) for _ in range(6)]
    texts = [" ".join(draws.choices([*items, "some words", "天地玄黄", "x\u0301\u00ad"], k=3)) for _ in range(12)]
    path = tmp_path_factory.mktemp("quiz") / "quiz.jsonl"
    path.write_text("\n".join(json.dumps({"text": item, "answer": item[:9]}) for item in items))
    params = Params(benchmarks={"quiz": str(path)}, action=action)
    order = draws.sample(range(12), 12)
    table = documents([*texts, None])
    whole = pa.Table.from_batches(list(screen(iter(table.to_batches()), params=params)))
    turned = table.take(pa.array([12, *order])).to_batches(max_chunksize=cuts)
    parts = pa.Table.from_batches(list(screen(iter(turned), params=params)))
    assert parts.sort_by("offset").to_pylist() == whole.sort_by("offset").to_pylist()
    assert whole.num_rows == 13
    assert [row["offset"] for row in parts.to_pylist()] == [12, *order]


@pytest.mark.slow
@pytest.mark.parametrize("on", ["spark", "ray"])
def test_every_engine_gives_the_same_hits_and_sketches(
    on: str, request: pytest.FixtureRequest, tmp_path: Path, quiz: str
) -> None:
    tables = [documents([PROSE, f"{PROSE} {edited(QUESTION, 9)}"]), documents([QUESTION, "天地玄黄", None])]
    manifests = []
    for root, engine, address in ((tmp_path / "here", "local", ""), (tmp_path / on, on, request.getfixturevalue(on))):
        parent = refining.commit_parent(root, tables)
        path, _ = refining.refined(root, STAGE, parent, {"benchmarks": {"quiz": quiz}}, on=engine, address=address)
        manifests.append((root / path).read_bytes())
    assert manifests[0] == manifests[1]
