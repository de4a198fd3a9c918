"""Other projects' own test cases, each under its own profile; what comes out otherwise is listed with its reason."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.filters import cc_net
from pipeline_tasks.stages import extract, filter_language, filter_quality, scrub_pii
from pipeline_tasks.text.edits import cc_net as cc_net_edits
from pipeline_tasks.text.near import shingles
from tests import refining
from tests.archives import read
from tests.documents import documents
from tests.stages.test_extract import page

Case = Mapping[str, Any]
Agreement = Callable[[Sequence[Case], Path], list[bool]]

LISTED: dict[str, str] = json.loads(Path(__file__).with_name("conformance_disagreements.json").read_text("utf-8"))


def texts_of(cases: Sequence[Case]) -> list[str]:
    return [case["input"]["text"] for case in cases]


def gopher(cases: Sequence[Case], _: Path) -> list[bool]:
    """As cs336 counts it: word count, mean word length, ellipsis lines, words with a letter; no stop words."""
    docs = documents(texts_of(cases), language=pa.array(["en"] * len(cases)))
    params = filter_quality.Params(profiles=("gopher_quality",), limits={"gopher_quality": {"min_stop_words": 0}})
    out = pa.Table.from_batches(filter_quality.filter_texts(iter(docs.to_batches()), params=params))
    kept = [reason is None for reason in out["reason"].to_pylist()]
    return [keeps == case["expected"]["keep"] for keeps, case in zip(kept, cases, strict=True)]


def languages(cases: Sequence[Case], _: Path) -> list[bool]:
    """The language of each text, however short; scores are the model's own."""
    params = filter_language.Params(keep=(), threshold=0.0, min_chars=0)
    batches = documents(texts_of(cases)).to_batches()
    out = pa.Table.from_batches(filter_language.identify(iter(batches), params=params))
    expected = [case["expected"].get("language") or case["expected"]["ft_lang"] for case in cases]
    return [language == wanted for language, wanted in zip(out["language"].to_pylist(), expected, strict=True)]


def masks(cases: Sequence[Case], _: Path) -> list[bool]:
    """Placeholders are other words for the same thing; cs336 masks addresses that nobody can reach, too."""
    ours = {"<EMAIL>": "|||EMAIL_ADDRESS|||", "<PHONE>": "|||PHONE_NUMBER|||", "<IP>": "|||IP_ADDRESS|||"}
    batches = documents(texts_of(cases)).to_batches()
    (out,) = scrub_pii.scrub(iter(batches), params=scrub_pii.Params(public_ips=False))
    scrubbed = out["text"].to_pylist()
    for placeholder, theirs in ours.items():
        scrubbed = [text.replace(placeholder, theirs) for text in scrubbed]
    return [text == case["expected"]["text"] for text, case in zip(scrubbed, cases, strict=True)]


def extracts(cases: Sequence[Case], _: Path) -> list[bool]:
    pages = [page(case["input"]["html"]) for case in cases]
    batches = pa.Table.from_pylist(pages, extract.PAGE).to_batches()
    (out,) = extract.extract_pages(iter(batches), params=extract.Params(min_chars=0))
    return [text == case["expected"]["text"] for text, case in zip(out["text"].to_pylist(), cases, strict=True)]


def wet(cases: Sequence[Case], _: Path) -> list[bool]:
    return [agrees_on_wet(case["input"]["wet"].encode(), case["expected"]) for case in cases]


def agrees_on_wet(archive: bytes, expected: Mapping[str, Any]) -> bool:
    """Where, when, and the first line of each text, which cc_net takes for the title."""
    rows = [row for row in read(archive, "a.warc.wet") if row["text"] is not None]
    titles = [row["text"].partition("\n")[0] for row in rows]
    same = titles == expected["titles"] and [row["url"] for row in rows] == expected["urls"]
    return same and [row["crawled_at"] for row in rows] == expected["dates"]


def ascii_marks(cases: Sequence[Case], _: Path) -> list[bool]:
    limits = cc_net.Limits(ascii_punctuation=1)
    texts = pa.array(texts_of(cases), pa.large_string())
    written = cc_net.compute_signals(texts, pa.nulls(len(cases), pa.string()), 0, limits).texts.to_pylist()
    return [text == case["expected"]["text"] for text, case in zip(written, cases, strict=True)]


def written_by(function: Callable[[Any], Any]) -> Agreement:
    """Compare what `function` makes of the texts."""

    def agreement(cases: Sequence[Case], _: Path) -> list[bool]:
        written = function(pa.array(texts_of(cases), pa.large_string())).to_pylist()
        return [text == case["expected"]["text"] for text, case in zip(written, cases, strict=True)]

    return agreement


def near_duplicates(cases: Sequence[Case], root: Path) -> list[bool]:
    """Each cluster loses all but one, exactly or nearly equal; nothing else goes."""
    agreed = []
    for at, case in enumerate(cases):
        case_root, case_params = root / str(at), case["params"]
        names = {doc["text"]: doc["id"] for doc in case["input"]["docs"]}
        table = documents([doc["text"] for doc in case["input"]["docs"]])
        exact, _ = refining.refined(
            case_root, "dedup_exact", refining.commit_parent(case_root, [table]), {"buckets": 1}
        )
        bands = case_params["num_bands"]
        params = {
            "ngram": case_params["ngrams"],
            "bands": bands,
            "rows": case_params["num_hashes"] // bands,
            "buckets": 1,
        }
        _, manifest = refining.refined(
            case_root, "dedup_minhash", exact, params | {"threshold": case_params["jaccard_threshold"]}
        )
        kept = {names[row["text"]] for row in refining.rows(case_root, manifest).to_pylist()}
        lost = [cluster for cluster in case["expected"]["clusters"] if len(kept & set(cluster)) != 1]
        agreed.append(len(kept) == case["expected"]["kept"] and not lost)
    return agreed


def same_words(cases: Sequence[Case], _: Path) -> list[bool]:
    """Whether `dedup_minhash` sees the same words in a text and in what the other project makes of it."""
    pairs = [(case["input"]["arg0"], case["expected"]["value"]) for case in cases]
    return [words_of(text) == words_of(expected) for text, expected in pairs]


def words_of(text: str) -> list[Any]:
    return [word for word, _ in shingles.words(text)]


def nothing_of_the_kind(cases: Sequence[Case], _: Path) -> list[bool]:
    """No stage computes this."""
    return [False] * len(cases)


AGREEMENTS: dict[str, Agreement] = {
    "gopher_quality_no_stopword_no_repetition": gopher,
    "quality_classifier": nothing_of_the_kind,
    "langid": languages,
    "fasttext_lid176_output": languages,
    "mask_email": masks,
    "mask_phone": masks,
    "mask_ip": masks,
    "resiliparse_extract_plain_text": extracts,
    "parse_wet": wet,
    "replace_unicode_punct": ascii_marks,
    "normalize_numbers": written_by(cc_net_edits.zero_digits),
    "normalize_for_dedup": written_by(cc_net_edits.line_keys),
    "minhash": near_duplicates,
    "exact_line_corpus": nothing_of_the_kind,
    "exact_line_first_kept": nothing_of_the_kind,
    "text_dedup.normalize": same_words,
    "text_dedup.news_copy_preprocessing": same_words,
}
"""How Refinery computes each rule of the cases."""


@pytest.fixture(scope="module")
def cases(shared_data: Path) -> list[Case]:
    lines = gzip.decompress((shared_data / "conformance" / "cases.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def mended(archive: str) -> bytes:
    """The same records with line ends and lengths as the format asks, and without digests of other bodies."""
    records = []
    for record in archive.split("WARC/1.0\n")[1:]:
        head, _, body = record.partition("\n\n")
        block = body.rstrip("\n").encode()
        fields = [line for line in head.split("\n") if not line.startswith(("Content-Length", "WARC-Block-Digest"))]
        lines = ["WARC/1.0", *fields, f"Content-Length: {len(block)}", "", ""]
        records.append("\r\n".join(lines).encode() + block + b"\r\n\r\n")
    return b"".join(records)


def test_the_wet_case_agrees_once_its_lengths_are_true(cases: list[Case]) -> None:
    (case,) = (case for case in cases if case["rule"] == "parse_wet")
    assert agrees_on_wet(mended(case["input"]["wet"]), case["expected"])


def test_every_case_is_checked_and_every_listed_one_exists(cases: list[Case]) -> None:
    assert {case["rule"] for case in cases} == set(AGREEMENTS)
    assert set(LISTED) <= {case["id"] for case in cases}
    assert all(len(reason) > 20 for reason in LISTED.values())


@pytest.mark.parametrize("rule", AGREEMENTS)
def test_case_agrees_or_is_explained(rule: str, cases: list[Case], tmp_path: Path) -> None:
    """A disagreement that is not listed fails, and so does a listed one that now agrees."""
    rule_cases = [case for case in cases if case["rule"] == rule]
    agreed = AGREEMENTS[rule](rule_cases, tmp_path)
    differ = {case["id"] for case, same in zip(rule_cases, agreed, strict=True) if not same}
    assert differ == {case["id"] for case in rule_cases} & set(LISTED)
