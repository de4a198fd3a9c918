"""Compares the verdicts of Refinery's filters with datatrove's, per filter, over every English document.

    python benchmarks/agreement.py [--input WET_FOLDER] [--words spacy unicode split] [--json]

Each filter judges each unedited document alone. A document agrees if both keep it, or both drop it for the same first
reason. datatrove runs in a separate environment (`peers.txt`). Documents that disagree are listed.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import documents
import peers
import pyarrow as pa

from pipeline_tasks.stages.filter_quality import Params, filter_texts

FILTERS = ("gopher_repetition", "gopher_quality", "c4", "fineweb")


def verdicts(texts: pa.Array, name: str, words: Any) -> tuple[list[str | None], list[str | None]]:  # noqa: ANN401 -- any rule
    """Return per document the first reason of one filter without its name, and all evidence."""
    batch = pa.record_batch(
        {
            "text": texts,
            "chars": pa.nulls(len(texts), pa.int64()),
            "language": pa.array(["en"] * len(texts)),
        }
    )
    screened = next(filter_texts(iter([batch]), params=Params(profiles=(name,), words=words)))
    reasons = [reason and reason.partition(":")[2] for reason in screened["reason"].to_pylist()]
    return reasons, screened["evidence"].to_pylist()


def compare(texts: list[str], peer: dict[str, list[str | None]], words: str) -> dict[str, Any]:
    """Return per filter the share that agrees and, of each document that does not, both reasons and our evidence."""
    comparisons: dict[str, Any] = {}
    for name in FILTERS:
        ours, evidence = verdicts(pa.array(texts, pa.large_string()), name, words)
        pairs = zip(peer[name], ours, strict=True)
        apart = [
            (row, theirs, our_reason, evidence[row])
            for row, (theirs, our_reason) in enumerate(pairs)
            if theirs != our_reason
        ]
        comparisons[name] = {"agree": 1 - len(apart) / len(texts), "apart": apart}
    return comparisons


def peer_verdicts(texts: list[str]) -> dict[str, list[str | None]]:
    """Return datatrove's first reason per filter and document."""
    with tempfile.TemporaryDirectory(prefix="refinery-agreement-") as folder:
        path = Path(folder) / "documents.jsonl"
        peers.write_documents(path, texts)
        answer = peers.run("peer_datatrove.py", str(path), python=peers.install())
    verdicts_of: dict[str, list[str | None]] = answer["verdicts"]
    return verdicts_of


def main() -> None:
    """Print the table and the documents that disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, default=documents.WET if documents.WET.exists() else None)
    parser.add_argument("--words", nargs="+", default=["spacy", "unicode", "split"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="refinery-agreement-") as root:
        texts = documents.english(options.input, Path(root))["text"].to_pylist()
    peer = peer_verdicts(texts)
    print(f"{len(texts):,} English documents, {sum(map(len, texts)) / 1e6:.1f} M characters")
    shares = {}
    for words in options.words:
        comparisons = compare(texts, peer, words)
        shares[words] = {name: round(comparison["agree"], 5) for name, comparison in comparisons.items()}
        print(f"words: {words:<8}", *(f"{name} {share:.2%}" for name, share in shares[words].items()))
        if words == "spacy":
            for name, comparison in comparisons.items():
                for row, theirs, our_reason, evidence in comparison["apart"]:
                    print(
                        f"  {name} document {row} ({len(texts[row]):,} characters): {theirs} there, {our_reason} here"
                    )
                    print(f"    {evidence}  {texts[row][:60]!r}")
    if options.json:
        print(json.dumps(shares))


if __name__ == "__main__":
    main()
