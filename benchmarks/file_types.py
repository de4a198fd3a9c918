r"""Measures the readers of types of files on files whose text is known, beside other readers, in one run.

    PYTHONPATH=. python benchmarks/file_types.py [--folder FOLDER] [--turns T] [--public FOLDER] [--json]

`known_files.py` makes the files from texts in eleven languages (`known_texts.py`) by each producer that is installed:
browsers, office suites, TeX, libraries and scanners; the others are named in `missing` with how they are installed.
Files that are in FOLDER already are read as they are. The other readers are those of `peer_files.py`, installed from
PyPI (`peers_files.txt`).

For PDFs with text: `f1` is the F1 of words, a sign of Chinese or Japanese is one; `f1_whole` that of words with their
vowel signs, at which `f1` cuts those of India's scripts; `order` the share of neighboring words of documents in two
columns that are neighbors in what was read, `order_blocks` that of the ends and beginnings of neighboring paragraphs.
For all that have them: `teds` is the similarity of tables by edits of their trees, `headings` the share of headings
that are found, `headings_false` that of found ones that are none. `pages_s` is pages by second of processor time.
`scanned` is the share of pages of images and of garbled letters that are named as unread,
`scanned_false` that of pages with text. Means are over files; `least` is that of the worst language.
`hostile` counts what became of files that are broken, encrypted or bombs (`tests/file_types/hostile.py`).
`--public` reads PDFs of another folder, without a known text: errors, files without text, pages by second.
"""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import block_scores
import known_texts
import peers
from known_texts import Block, Known
from peer_files import row_of

PINS, ENVIRONMENT = "peers_files.txt", "peers-files"
PDF_PEERS = ("pypdfium2", "pdf_inspector", "pypdf", "pdfminer")
DOCX_PEERS = ("mammoth", "docx2python", "python_docx")
WITHOUT_TEXT = ("scan", "scan mixed", "garbled")
Rows = dict[str, dict[str, Any]]
_SIGNS = "".join(chr(code) for code in range(0x300, 0x1FFF) if unicodedata.category(chr(code))[0] == "M")
# a sign of Chinese or Japanese is a word
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WHOLE = re.compile(f"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\\w{_SIGNS}])+")


class Read(NamedTuple):
    """A file that was read: its row of `files.json`, its document, and what a reader said of it."""

    file: dict[str, Any]
    known: Known
    found: dict[str, Any]

    @property
    def blocks(self) -> list[Block]:
        """The blocks that were read."""
        return known_texts.blocks_of(self.found.get("html", ""))


# --- Scores -----------------------------------------------------------------------------------------------------


def f1(read: Read) -> float:
    """Return the F1 of the multisets of words."""
    found, wanted = (_words(known_texts.text_of(blocks)) for blocks in (read.blocks, _wanted(read)))
    return block_scores.word_scores(found, wanted)[0]


def _wanted(read: Read) -> list[Block]:
    return known_texts.blocks_of(read.known.html)


def _words(text: str) -> str:
    return " ".join(block_scores.words_of(unicodedata.normalize("NFC", text)))


def whole_f1(read: Read) -> float:
    """Return the F1 of the multisets of words with their vowel signs, a word of Chinese or Japanese being a sign."""
    found, wanted = (
        Counter(_WHOLE.findall(unicodedata.normalize("NFC", known_texts.text_of(blocks)).lower()))
        for blocks in (read.blocks, _wanted(read))
    )
    return 2 * (found & wanted).total() / max(found.total() + wanted.total(), 1)


def order(read: Read) -> float:
    """Return the share of neighboring words that are neighbors in what was read."""
    return block_scores.kept_share(
        _words(known_texts.text_of(read.blocks)), _words(known_texts.text_of(_wanted(read))), 2
    )


def order_blocks(read: Read) -> float:
    """Return the share of neighboring blocks whose last and first two words are neighbors in what was read."""
    found = _words(known_texts.text_of(read.blocks)).split()
    runs = set(zip(*(found[at:] for at in range(4)), strict=False))
    blocks = [_words(block.text).split() for block in _wanted(read)]
    seams = [(*one[-2:], *other[:2]) for one, other in pairwise(blocks)]
    return sum(seam in runs for seam in seams) / max(len(seams), 1)


def teds(read: Read) -> float:
    """Return the mean similarity of the tables of a document to those that were read."""
    found = [block.rows for block in read.blocks if block.kind == "table"]
    wanted = [block.rows for block in _wanted(read) if block.kind == "table"]
    return mean(block_scores.nearest_table(found, rows) for rows in wanted)


def headings(read: Read) -> tuple[float, float]:
    """Return the share of the headings that were found, and that of the found ones that are none."""
    found, wanted = (
        [_words(block.text) for block in blocks if re.fullmatch("h[1-6]", block.kind)]
        for blocks in (read.blocks, _wanted(read))
    )
    recall = sum(heading in found for heading in wanted) / max(len(wanted), 1)
    return recall, sum(heading not in wanted for heading in found) / max(len(found), 1)


def mean(values: Iterable[float]) -> float:
    """Return the mean, 0 of nothing."""
    listed = list(values)
    return statistics.fmean(listed) if listed else 0.0


def grouped(reads: Iterable[Read], key: Callable[[Read], str], score: Callable[[Read], float]) -> dict[str, float]:
    """Return the mean score of each group."""
    scores = defaultdict[str, list[float]](list)
    for read in reads:
        scores[key(read)].append(score(read))
    return {name: mean(values) for name, values in sorted(scores.items())}


# --- Readers ----------------------------------------------------------------------------------------------------


def readers() -> dict[str, Callable[[bytes], Any]]:
    """Return the readers of the types that are brought."""
    from pipeline_tasks.file_types import brought_types

    places = {name: card.read.partition(":") for name, card in brought_types().items()}
    return {name: getattr(import_module(module), function) for name, (module, _, function) in places.items()}


def measured(folder: Path, turns: int) -> Rows:
    """Return the rows of our readers for all files of a folder."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows, warm = Rows(), set[str]()
    known = readers()
    for file in files_of(folder)["files"]:
        if file["type"] not in known:
            continue
        read = known[file["type"]]
        said: dict[str, Any] = {}

        def call(body: bytes, read: Callable[[bytes], Any] = read, said: dict[str, Any] = said) -> tuple[Any, ...]:
            text = read(body)
            said.update(title=text.title, language=text.language, published=text.published)
            return text.parts, len(text.parts), list(text.unread)

        body = (folder / file["path"]).read_bytes()
        if file["type"] not in warm:
            warm.add(file["type"])
            row_of(body, call, 1)  # imports are not counted
        row = row_of(body, call, turns)
        rows[file["path"]] = row | said | {"html": "\n".join(row.get("html", ()))}
    return rows


def files_of(folder: Path) -> dict[str, Any]:
    """Return what `known_files.py` says of the files that it made."""
    found: dict[str, Any] = json.loads((folder / "files.json").read_text())
    return found


# --- Figures ----------------------------------------------------------------------------------------------------


def pdf_figures(reads: list[Read]) -> dict[str, Any]:
    """Return the figures of a reader of PDFs."""
    texts = [read for read in reads if not read.file["producer"].startswith(("scan", "garbled"))]
    columns = [read for read in texts if read.known.layout == "columns"]
    tables = [read for read in texts if read.known.layout == "tables"]
    headed = [read for read in texts if read.known.layout != "tables"]
    languages, producers = grouped(texts, _language, f1), grouped(texts, _producer, f1)
    whole = grouped(texts, _language, whole_f1)
    seconds = sum(read.found["seconds"] for read in texts)
    return {
        "files": len(texts),
        "errors": sum("error" in read.found for read in texts),
        "f1": mean(f1(read) for read in texts),
        "f1_whole": mean(whole_f1(read) for read in texts),
        "f1_whole_least": min(whole.values(), default=0.0),
        "f1_least": min(languages.values(), default=0.0),
        "order": mean(order(read) for read in columns),
        "order_blocks": mean(order_blocks(read) for read in columns),
        "teds": mean(teds(read) for read in tables),
        "headings": mean(headings(read)[0] for read in headed),
        "headings_false": mean(headings(read)[1] for read in headed),
        "pages_s": sum(read.found.get("pages", 0) for read in texts) / max(seconds, 1e-9),
        "f1_layer": mean(f1(read) for read in reads if read.file["producer"] == "scan layer"),
        **scan_figures(reads),
        "f1_languages": languages,
        "f1_producers": producers,
        "f1_whole_languages": whole,
        "f1_whole_hindi": grouped((read for read in texts if _language(read) == "hi"), _producer, whole_f1),
        "order_producers": grouped(columns, _producer, order),
        "teds_producers": grouped(tables, _producer, teds),
        "headings_producers": grouped(headed, _producer, lambda read: headings(read)[0]),
        "titles": mean(read.found.get("title") == read.known.title for read in texts),
    }


def _language(read: Read) -> str:
    return read.known.language


def _producer(read: Read) -> str:
    return str(read.file["producer"])


def scan_figures(reads: list[Read]) -> dict[str, float]:
    """Return the shares of pages that are named as unread, of those without text and of those with text."""
    counts = dict.fromkeys(("hit", "without", "false", "with"), 0)
    kinds = defaultdict[str, list[float]](list)
    for read in reads:
        wanted, named = set(read.file["unread"]), set(read.found.get("unread", ()))
        pages = set(range(1, read.found.get("pages", 0) + 1)) | wanted
        counts["hit"] += len(named & wanted)
        counts["without"] += len(wanted)
        counts["false"] += len(named - wanted)
        counts["with"] += len(pages - wanted)
        if wanted:
            kinds[read.file["producer"]].append(len(named & wanted) / len(wanted))
    return {
        "scanned": counts["hit"] / max(counts["without"], 1),
        "scanned_false": counts["false"] / max(counts["with"], 1),
        **{f"scanned {kind}": mean(shares) for kind, shares in kinds.items()},
    }


def other_figures(reads: list[Read]) -> dict[str, Any]:
    """Return the figures of a reader of a type without pages."""
    tables = [read for read in reads if any(block.kind == "table" for block in _wanted(read))]
    return {
        "files": len(reads),
        "errors": sum("error" in read.found for read in reads),
        "f1": mean(f1(read) for read in reads),
        "order": mean(order(read) for read in reads),
        "teds": mean(teds(read) for read in tables),
        "headings": mean(headings(read)[0] for read in reads),
        "headings_false": mean(headings(read)[1] for read in reads),
        "titles": mean(read.found.get("title") == read.known.title for read in reads),
        "files_s": len(reads) / max(sum(read.found["seconds"] for read in reads), 1e-9),
    }


def joined(folder: Path, rows: Rows) -> list[Read]:
    """Return the files that a reader was given, with their documents."""
    documents = {known.name: known for known in known_texts.documents()}
    return [
        Read(file, documents[file["document"]], rows[file["path"]])
        for file in files_of(folder)["files"]
        if file["path"] in rows
    ]


def _ending(read: Read) -> str:
    return str(read.file["producer"])


def figures(folder: Path, turns: int) -> dict[str, Any]:
    """Return the figures of all readers on the files of a folder."""
    python = peers.install(PINS, ENVIRONMENT)
    if not (folder / "files.json").exists():
        peers.run("known_files.py", str(folder), python=python)
    ours = joined(folder, peers.run("file_types.py", "--measure", str(folder), "--turns", str(turns)))
    pdf = {"ours": pdf_figures([read for read in ours if read.file["type"] == "pdf"])}
    for name in PDF_PEERS:
        rows = peers.run("peer_files.py", name, str(folder), str(turns), python=python)
        pdf[name] = pdf_figures(joined(folder, rows))
    bare = pdf["pypdfium2"]["pages_s"]
    for found in pdf.values():
        found["pages_s_ratio"] = found["pages_s"] / max(bare, 1e-9)
    others = {}
    for kind in dict.fromkeys(read.file["producer"] for read in ours if read.file["type"] != "pdf"):
        others[kind] = other_figures([read for read in ours if read.file["producer"] == kind])
    docx = {"ours": other_figures([read for read in ours if read.file["path"].endswith(".docx")])}
    for name in DOCX_PEERS:
        rows = peers.run("peer_files.py", name, str(folder), str(turns), python=python)
        docx[name] = other_figures(joined(folder, rows))
    return {"pdf": pdf, "docx": docx, "others": others, "missing": files_of(folder)["missing"]}


def public_figures(folder: Path) -> dict[str, Any]:
    """Return the figures of PDFs without a known text: files, errors, files without text, pages by second."""
    python = peers.install(PINS, ENVIRONMENT)
    read, rows = readers()["pdf"], Rows()
    for path in sorted(folder.rglob("*.pdf")):

        def call(body: bytes) -> tuple[Any, ...]:
            text = read(body)
            return "\n".join(text.parts), len(text.parts), list(text.unread)

        rows[str(path.relative_to(folder))] = row_of(path.read_bytes(), call, 1)
    found = {"ours": rows} | {
        name: peers.run("peer_files.py", name, str(folder), "1", python=python) for name in PDF_PEERS
    }
    return {name: public_figure(rows) for name, rows in found.items()}


def public_figure(rows: Rows) -> dict[str, Any]:
    """Return the figures of one reader."""
    errors = defaultdict[str, int](int)
    for row in rows.values():
        errors[row.get("error", "")] += 1
    del errors[""]
    texts = {path: known_texts.text_of(known_texts.blocks_of(row.get("html", ""))) for path, row in rows.items()}
    pages, seconds = sum(row.get("pages", 0) for row in rows.values()), sum(row["seconds"] for row in rows.values())
    return {
        "files": len(rows),
        "pages": pages,
        "errors": dict(errors),
        "empty": sum(not text.strip() for text in texts.values()) - sum(errors.values()),
        "words": sum(len(block_scores.words_of(text)) for text in texts.values()),
        "pages_s": pages / max(seconds, 1e-9),
    }


def hostile_figures() -> dict[str, Any]:
    """Return how many hostile files ended each way, and those that ended in none that is allowed."""
    from tests.file_types import hostile

    ends, faults = defaultdict[str, int](int), list[str]()
    for outcome in hostile.outcomes(hostile.files()):
        ends[outcome.end] += 1
        if outcome.fault:
            faults.append(f"{outcome.file.name}: {outcome.fault}")
    return {"files": sum(ends.values()), "ends": dict(sorted(ends.items())), "faults": faults}


def rounded(value: Any) -> Any:  # noqa: ANN401 -- what JSON has
    """Return figures with four digits."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def show(found: dict[str, Any], indent: int = 0) -> None:
    """Print figures in a tree."""
    for name, value in found.items():
        if isinstance(value, dict):
            print(" " * indent + name)
            show(value, indent + 2)
        else:
            print(f"{' ' * indent}{name:<24}{value}")


def main() -> None:
    """Print the measurements; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the files are made, and stay")
    parser.add_argument("--turns", type=int, default=1, help="the least seconds of so many count")
    parser.add_argument("--public", type=Path, help="a folder of other PDFs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        json.dump(measured(options.measure, options.turns), sys.stdout)
        return
    with tempfile.TemporaryDirectory() as room:
        found = rounded(figures(options.folder or Path(room), options.turns))
    found["hostile"] = hostile_figures()
    if options.public:
        found["public"] = rounded(public_figures(options.public))
    show(found)
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
