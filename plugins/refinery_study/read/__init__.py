"""Lets a person read documents that a version kept and rejected, and says what that tells of its recipe.

Modules: `sample` draws, `beside` reads what a document is compared with, `answers` stores, `shares` computes, `pairs`
shows near duplicates beside what is kept in their place. The room reads versions and landed records, and writes
answers, and images of pages where it is asked for these.
"""

import argparse
import getpass
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pipeline_tasks.inspect.command import add_snapshot, number, outside, print_result, recipe_of, version_of
from pipeline_tasks.inspect.expired import expired_in
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.inspect.unpublished import say
from pipeline_tasks.publish.logs.version_log import Version
from refinery_study.read.answers import LONGEST, Answer, Verdict, answers, save
from refinery_study.read.beside import FilePage, LandedPage, Line, landed_page
from refinery_study.read.pairs import drawn_pairs, pair_facts, pair_lines
from refinery_study.read.sample import Choice, Sampled, sample
from refinery_study.read.shares import Agreement, Reading, Share, findings, in_short, reading

SHOWN = 3000
"""Characters of a text that are shown at a time."""

PAGE_SHOWN = 20_000
"""Characters of a landed page that are shown."""

PAIRS_HELP = "ask nothing; show N removed near duplicates, each beside the document that is kept in its place"

KEYS = "g good   b WHY bad   m more   p page   s skip   q stop"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root and the snapshot, what is drawn, and who reads."""
    add_snapshot(parser)
    parser.add_argument("--kept", type=number(int, 0), default=30, metavar="N", help="documents that were kept (30)")
    parser.add_argument("--rejected", type=number(int, 0), default=30, metavar="N", help="documents that were not (30)")
    parser.add_argument("--seed", type=number(int, 0), default=1, metavar="N", help="which documents are drawn (1)")
    parser.add_argument("--reason", action="append", default=[], metavar="WHY", help="only rejected for it; repeatable")
    parser.add_argument("--language", action="append", default=[], metavar="CODE", help="only these; may be repeated")
    parser.add_argument(
        "--who",
        "--reader",
        dest="reader",
        default="",
        metavar="NAME",
        help="who reads (default: the user of this machine)",
    )
    parser.add_argument("--shown", action="store_true", help="say before the answer whether it was kept, and why not")
    parser.add_argument("--beside", action="store_true", help="show what its landed page shows below each text")
    parser.add_argument(
        "--images", default="", metavar="FOLDER", help="as --beside, and draw the pages of files into FOLDER, as PNG"
    )
    parser.add_argument("--pairs", type=number(int, 1), metavar="N", help=PAIRS_HELP)
    parser.add_argument("--summary", action="store_true", help="ask nothing; print what was answered so far")


def answer(options: argparse.Namespace) -> int:
    """Ask for a verdict on each document that is drawn and that the reader has not judged; then print the shares."""
    if options.pairs:
        return _show_pairs(options)
    if not options.summary:
        version = version_of(options)
        say(expired_in(options.root, version.manifests))
        reader = options.reader or getpass.getuser()
        known = {each.id for each in answers(options.root, version.recipe) if each.reader == reader}
        drawn = sample(options.root, version, _choice(options))
        unread = [document for document in drawn if document.id not in known]
        if unread:
            looked(options, len(unread), [document.id for document in unread], version)
        _ask(options, version, reader, unread)
    read = reading(answers(options.root, recipe_of(options)))
    print_result(options, reading_facts(read), reading_lines(read))
    return 0


def _show_pairs(options: argparse.Namespace) -> int:
    version = version_of(options)
    say(expired_in(options.root, version.manifests))
    pairs = drawn_pairs(options.root, version, options.pairs, options.seed)
    looked(options, len(pairs), [side.id for pair in pairs for side in (pair.loser, pair.winner)], version)
    print_result(options, pair_facts(pairs), pair_lines(options.root, version, pairs))
    return 0


def _choice(options: argparse.Namespace) -> Choice:
    counts = int(options.kept), int(options.rejected), int(options.seed)
    return Choice(*counts, tuple(options.reason), tuple(options.language))


# --- Asking -----------------------------------------------------------------------------------------------------------


def _ask(options: argparse.Namespace, version: Version, reader: str, documents: Sequence[Sampled]) -> None:
    for place, document in enumerate(documents, 1):
        page = partial(_page_lines, options.root, version, document, options.images)
        _say(_title(document, f"{place} of {len(documents)}"))
        _say(page() if options.beside or options.images else [])
        _say([outcome_line(document)] if options.shown else [])
        verdict = _verdict(document.text, page)
        if verdict is None:
            return
        if verdict[0] == "":
            continue
        save(options.root, answer_of(version, document, reader, *verdict))
        _say([] if options.shown else [outcome_line(document)])


def _page_lines(root: str, version: Version, document: Sampled, images: str) -> list[str]:
    page = landed_page(root, version, document, draws=bool(images))
    folder = Path(outside(images, root, "--images")) if images else None
    return [*page_lines(page), *(_write_images(page, folder, document.id) if folder else ())]


def _write_images(page: LandedPage, folder: Path, name: str) -> Iterator[str]:
    """Write how the pages of a file look, and yield where each image is."""
    for each in page.pages:
        if each.image:
            folder.mkdir(parents=True, exist_ok=True)
            place = folder / f"{name}-{each.number}.png"
            place.write_bytes(each.image)
            yield f"--- page {each.number} looks as {place}"
        elif each.is_withheld:
            yield f"--- page {each.number} is not drawn: its image may have personal data that its text has not"


def _say(lines: Sequence[str]) -> None:
    """Print to stderr: the result of the command on stdout may be read by a program."""
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.stderr.flush()


def _title(document: Sampled, place: str) -> list[str]:
    about = " ".join(filter(None, [document.language, document.url]))
    return ["", f"--- document {place}  {about}", *filter(None, [document.title]), "", document.text[:SHOWN], ""]


def _verdict(text: str, page: Callable[[], Sequence[str]]) -> tuple[Verdict | str, str] | None:
    """Return the verdict that is typed and why, ("", "") if the document is skipped, None if the reader stops."""
    shown = SHOWN
    while True:
        left = f"   ({len(text) - shown:,} characters more)" if shown < len(text) else ""
        _say([f"{KEYS}{left}"])
        line = sys.stdin.readline()
        key, _, why = line.strip().partition(" ")
        if not line or key == "q":
            return None
        if key == "s":
            return "", ""
        if key == "g":
            return "good", why.strip()[:LONGEST]
        if key == "b" and why.strip():
            return "bad", why.strip()[:LONGEST]
        if key == "m":
            _say([text[shown : shown + SHOWN]])
            shown += SHOWN
        elif key == "p":
            _say(page())
        elif key == "b":
            _say(["b needs the reason in a few words, as in `b half of the page is missing`"])


def page_lines(page: LandedPage) -> Iterator[str]:
    """Yield what a landed page shows, with `|` before each line that the document has not."""
    if page.why_not:
        yield page.why_not
        return
    yield "--- its page; the text lacks lines that begin with |"
    yield from _file_lines(page.pages) if page.pages else _line_lines(page.lines)


def _file_lines(pages: Sequence[FilePage]) -> Iterator[str]:
    """Yield the lines of a file by its pages, as many as of a page."""
    left = PAGE_SHOWN
    for page in pages:
        if left <= 0:
            yield f"--- the file has more; its first {PAGE_SHOWN:,} characters are shown"
            return
        yield f"--- page {page.number} of {len(pages)}{'' if page.is_read else ', whose text is not to be had'}"
        yield from _line_lines(page.lines, left)
        left -= sum(len(line.text) + 1 for line in page.lines)


def _line_lines(lines: Sequence[Line], left: int = PAGE_SHOWN) -> Iterator[str]:
    for line in lines:
        if left <= 0:
            yield f"--- the page has more; its first {PAGE_SHOWN:,} characters are shown"
            return
        yield f"{' ' if line.is_kept else '|'} {line.text[:left]}".rstrip()
        left -= len(line.text) + 1


def answer_of(version: Version, document: Sampled, reader: str, verdict: Any, why: str) -> Answer:  # noqa: ANN401 -- of a form
    """Return the answer of a reader on a document, given now."""
    return Answer(
        recipe=version.recipe,
        snapshot=version.snapshot,
        version=version.prefix,
        id=document.id,
        stage=document.stage,
        reason=document.reason,
        language=document.language,
        verdict=verdict,
        why=why,
        reader=reader,
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
    )


def outcome_line(document: Sampled) -> str:
    """Return what became of a document, in one line."""
    if document.is_kept:
        return "    it was kept"
    return f"    it was rejected by {document.stage}: {document.evidence or document.reason}"


# --- Output -----------------------------------------------------------------------------------------------------------


def reading_facts(read: Reading) -> dict[str, Any]:
    """Return what readers say, for a program."""
    return asdict(read) | {
        "kept": _facts(read.kept),
        "rejected": _facts(read.rejected),
        **{kind: [_facts(share) for share in getattr(read, kind)] for kind in ("rules", "languages", "readers")},
        "findings": [{"rule": rule, "message": message} for rule, message in findings(read)],
    }


def _facts(share: Share) -> dict[str, Any]:
    low, high = share.interval
    return asdict(share) | {"low": round(low, 4), "high": round(high, 4)}


def reading_lines(read: Reading) -> Iterator[str]:
    """Yield what readers say, for a person."""
    if not read.kept.judged and not read.rejected.judged:
        yield "nobody has read a document of this recipe yet"
        return
    yield f"{'documents':<44}judged   good   share (95 %)"
    yield from map(_line, (read.kept, read.rejected))
    for kind, shares in (("rejected by", read.rules), ("kept in", read.languages)):
        yield from [kind] if shares else []
        yield from (f"  {_line(share, 42)}" for share in shares)
    names = ", ".join(f"{share.name} ({share.judged:,})" for share in read.readers)
    yield f"readers  {names}"
    yield from agreement_lines(read.agreement, "documents", "read")
    for rule, message in findings(read):
        yield f"! {rule}: {message}"


def agreement_lines(agreement: Agreement, what: str, done: str) -> Iterator[str]:
    """Yield how far readers agree on what several of them judged; nothing where no two have."""
    if agreement.documents:
        yield f"         they agree on {in_short(agreement.same)} of {agreement.documents:,} {what} that several {done}"


def _line(share: Share, width: int = 44) -> str:
    low, high = share.interval
    counts = f"{share.name:<{width}}{share.judged:>6,} {in_short(share.good):>6}"
    return f"{counts}   {share.good / share.judged:.0%} ({low:.0%} to {high:.0%})" if share.judged else counts
