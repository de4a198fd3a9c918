"""Compares what is found of each kind of personal data with Presidio's pattern recognizers, on the same cases.

    python benchmarks/pii_kinds.py [--cases FILE] [--json]

Cases are the labelled sentences of several projects and the made-up values of `tests/text/pii`, whose check digits are
python-stdnum's. A hit overlaps its label and has its kind. Precision is over the cases in which every kind is labelled.
"""

import argparse
import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import peers

SHARED = Path(__file__).parents[2] / "shared" / "data" / "pii" / "pii-cases.jsonl.gz"
MADE_UP = Path(__file__).parents[1] / "tests" / "text" / "pii" / "made_up.jsonl"
LABELS = {
    **dict.fromkeys(("EMAIL", "EMAIL_ADDRESS"), "email"),
    **dict.fromkeys(("PHONE", "PHONE_NUMBER", "TR_PHONE_NUMBER"), "phone"),
    **dict.fromkeys(("CREDIT_CARD", "CREDIT_CARD_NUMBER"), "card"),
    **dict.fromkeys(("US_SSN", "SSN", "SOCIAL_SECURITY_NUMBER", "UK_NINO", "DE_TAX_ID"), "national_id"),
    **dict.fromkeys(("NATIONAL_INSURANCE_NUMBER", "IT_FISCAL_CODE"), "national_id"),
    **dict.fromkeys(("BIRTH_DATE", "DATE_OF_BIRTH"), "birth_date"),
    "IP_ADDRESS": "ip",
    "IBAN_CODE": "iban",
    "MAC_ADDRESS": "mac",
}
HALF = 0.5

Span = tuple[str, int, int]


class Case(NamedTuple):
    """One text: where its values are, and whether all that it has are labelled."""

    text: str
    language: str
    spans: tuple[Span, ...]
    complete: bool


def cases(shared: Path) -> Iterator[Case]:
    """Yield the labelled sentences, then the made-up ones."""
    with gzip.open(shared, "rt") as lines:
        for case in map(json.loads, lines):
            spans = tuple((LABELS[s["type"]], s["start"], s["end"]) for s in case["spans"] if s["type"] in LABELS)
            yield Case(case["text"], case["lang"], spans, case["complete"])
    for case in map(json.loads, MADE_UP.read_text(encoding="utf-8").splitlines()):
        yield Case(
            case["text"], case["lang"], tuple((kind, start, end) for kind, start, end in case["spans"]), complete=True
        )


def ours(known: Sequence[Case]) -> Sequence[Iterable[Any]]:
    """Return what Refinery finds of all kinds."""
    from pipeline_tasks.text.pii.candidates import Limits
    from pipeline_tasks.text.pii.findings import find_pii
    from pipeline_tasks.text.pii.kinds import KINDS
    from pipeline_tasks.text.pii.regions import regions_of

    found = []
    for case in known:
        body = case.text.encode()
        limits = Limits(regions_of(case.language, "", ("US",)), public_ips=False, kinds=frozenset(KINDS))
        spans = find_pii(body, limits)
        found.append([(s.kind, len(body[: s.start].decode()), len(body[: s.end].decode())) for s in spans])
    return found


def measured(known: Sequence[Case], found: Sequence[Iterable[Any]]) -> dict[str, dict[str, float | int | None]]:
    """Return recall and precision of each kind, with how many values each is of."""
    labels, hits, total, right = (Counter[str]() for _ in range(4))
    for case, spans in zip(known, found, strict=True):
        labels.update(kind for kind, *_ in case.spans)
        hits.update(label[0] for label in case.spans if any(_overlap(label, span) for span in spans))
        if case.complete:
            total.update(span[0] for span in spans)
            right.update(span[0] for span in spans if any(_overlap(span, label) for label in case.spans))
    return {
        kind: {
            "labels": labels[kind],
            "recall": round(hits[kind] / labels[kind], 3),
            "found": total[kind],
            "precision": round(right[kind] / total[kind], 3) if total[kind] else None,
        }
        for kind in sorted(labels)
    }


def _overlap(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return bool(left[0] == right[0] and left[1] < right[2] and right[1] < left[2])


def main() -> None:
    """Print the table; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, default=SHARED)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    python = peers.install_with_pip("peers_pii.txt", "peers-pii")
    known = list(cases(options.cases))
    with tempfile.TemporaryDirectory(prefix="refinery-pii-") as name:
        texts = Path(name) / "texts.jsonl"
        peers.write_documents(texts, [case.text for case in known])
        theirs = peers.run("peer_presidio.py", str(texts), python=python)["found"]
    sides = {
        "refinery": measured(known, ours(known)),
        "presidio": measured(known, theirs),
        "presidio_half": measured(known, [[span for span in spans if span[3] >= HALF] for spans in theirs]),
    }
    print(f"{'':<14}{'labels':>7}" + "".join(f"{side:>24}" for side in sides))
    print(f"{'kind':<21}" + f"{'recall':>12}{'precision':>12}" * len(sides))
    for kind, ours_of in sides["refinery"].items():
        row = (
            f"{of[kind]['recall']:>12}{of[kind]['precision'] if of[kind]['found'] else '-':>12}"
            for of in sides.values()
        )
        print(f"{kind:<14}{ours_of['labels']:>7}" + "".join(row))
    if options.json:
        print(json.dumps(sides))


if __name__ == "__main__":
    main()
