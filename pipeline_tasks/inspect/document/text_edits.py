"""Shows what a stage cut out of a text or put into it, word by word, without personal data."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

import pyarrow as pa

from pipeline_tasks.cards import known_card
from pipeline_tasks.publish.logs.version_log import Version, stages_of
from pipeline_tasks.recipe import COMPOSE, LAND
from pipeline_tasks.store.reading import clears_personal_data, read_manifest

LARGE = 2000
"""Lines, or words of a block of changed lines, above which a block is one change: comparing takes quadratic time."""

COMPARED = 200_000
"""Characters of a text, from its beginning, that are compared."""

AROUND = 160
"""Characters that are shown of an unchanged stretch beside a change."""

LONGEST = 2000
"""Characters that are shown of a stretch that was cut or added."""

MOST = 60
"""Changes of a text that are shown."""

WITHHELD = "(This text is not shown: `{}` finds names in it by a model, which is not asked here.)"
"""What is shown for a text that may have names still."""

_WORDS = re.compile(r"\s+|\S+")

Kind = Literal["same", "cut", "added", "left_out"]


@dataclass(frozen=True, slots=True)
class TextEdit:
    """The text of a record as a stage got it and as the stage left it, which differ."""

    stage: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Change:
    """A stretch that both texts have (`cut` and `added` are the same), or one that differs."""

    cut: str
    added: str

    @property
    def is_same(self) -> bool:
        """Whether both texts have it."""
        return self.cut == self.added


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a marked text; of one that is `left_out` only the number of its characters is known.

    `stands_for` says what a piece is shown instead of, such as `email`: its text is not to be seen.
    """

    kind: Kind
    text: str
    chars: int
    stands_for: str = ""


def changes(before: str, after: str) -> list[Change]:
    """Return the stretches of two texts in order, those that differ and those that do not."""
    lines, others = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return _joined(change for block in _blocks(lines, others) for change in _in_words(block))


def _blocks(before: Sequence[str], after: Sequence[str]) -> Iterator[Change]:
    """Yield stretches of whole items; those at both ends that are the same need no comparison."""
    first = _common(before, after)
    last = _common(before[first:][::-1], after[first:][::-1])
    left, right = before[first : len(before) - last], after[first : len(after) - last]
    yield Change(*("".join(before[:first]),) * 2)
    if max(len(left), len(right)) > LARGE:
        yield Change("".join(left), "".join(right))
    else:
        for _, a, b, c, d in SequenceMatcher(None, left, right).get_opcodes():
            yield Change("".join(left[a:b]), "".join(right[c:d]))
    yield Change(*("".join(before[len(before) - last :]),) * 2)


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    pairs = zip(before, after, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))


def _in_words(block: Change) -> Iterable[Change]:
    if block.is_same or not (block.cut and block.added):
        return [block]
    return _blocks(_WORDS.findall(block.cut), _WORDS.findall(block.added))


def _joined(stretches: Iterable[Change]) -> list[Change]:
    """Return stretches without empty ones; those in a row that differ, with at most spaces between them, become one."""
    joined: list[Change] = []
    for stretch in stretches:
        if not (stretch.cut or stretch.added):
            continue
        follows_gap = len(joined) > 1 and not stretch.is_same and not joined[-1].cut.strip(" ")
        gap = [joined.pop()] if follows_gap else []
        if joined and (gap or joined[-1].is_same == stretch.is_same):
            joined[-1] = _as_one([joined[-1], *gap, stretch])
        else:
            joined.append(stretch)
    return joined


def _as_one(stretches: Sequence[Change]) -> Change:
    return Change("".join(each.cut for each in stretches), "".join(each.added for each in stretches))


# --- Pieces ---------------------------------------------------------------------------------------------------------


def marked(before: str, after: str) -> list[Piece]:
    """Return the pieces of two texts, what was cut before what was added; long unchanged stretches are folded."""
    stretches = changes(before[:COMPARED], after[:COMPARED])
    return _shown([list(_pieces(stretch)) for stretch in stretches])


def marked_whole(before: str, after: str) -> list[Piece]:
    """As `marked`, with nothing folded or left out: for texts that a person reads to the end."""
    return [piece for stretch in changes(before[:COMPARED], after[:COMPARED]) for piece in _pieces(stretch)]


def marked_redactions(before: str, after: str, redactions: Sequence[Mapping[str, Any]]) -> list[Piece]:
    """Return the pieces of a text with its redactions (`schema.REDACTION`): what was replaced is named and not shown.

    Nothing of `before` is shown but what `after` has, too.
    """
    stretches, place = [], 0
    for spot, following in zip(redactions, [*redactions[1:], None], strict=True):
        gap = (following["start"] if following else len(before)) - spot["end"]
        end = (following["at"] if following else len(after)) - gap
        hidden = Piece("cut", "", spot["end"] - spot["start"], stands_for=str(spot["kind"]))
        stretches += [[_piece("same", after[place : spot["at"]])], [hidden, _piece("added", after[spot["at"] : end])]]
        place = end
    return _shown([*stretches, [_piece("same", after[place:])]])


def _pieces(stretch: Change) -> Iterator[Piece]:
    if stretch.is_same:
        yield _piece("same", stretch.cut)
        return
    yield from (part for part in (_piece("cut", stretch.cut), _piece("added", stretch.added)) if part.chars)


def _piece(kind: Kind, text: str) -> Piece:
    return Piece(kind, text, len(text))


def _shown(stretches: Sequence[Sequence[Piece]]) -> list[Piece]:
    """Return the pieces of the first changes, folded; what follows the last that is shown is left out."""
    shown: list[Piece] = []
    ends = {0: (0, AROUND), len(stretches) - 1: (AROUND, 0)}
    places = 0
    for at, pieces in enumerate(stretches):
        places += pieces[0].kind != "same"
        if places > MOST:
            rest = sum(piece.chars for later in stretches[at:] for piece in later if piece.kind != "cut")
            return [*shown, Piece("left_out", "", rest)]
        for piece in pieces:
            first, last = ends.get(at, (AROUND, AROUND)) if piece.kind == "same" else (LONGEST // 2, LONGEST // 2)
            shown += _folded(piece, first, last)
    return shown


def _folded(piece: Piece, first: int, last: int) -> list[Piece]:
    """Return the first and the last characters of a piece, and what is left out between them; all of a short one."""
    left_out = len(piece.text) - first - last
    ends = piece.text[:first], piece.text[first + left_out :]
    folded = [_piece(piece.kind, ends[0]), Piece("left_out", "", left_out), _piece(piece.kind, ends[1])]
    return [part for part in (folded if left_out > AROUND else [piece]) if part.chars]


# --- Personal data --------------------------------------------------------------------------------------------------


def scrubbed(
    root: str, version: Version, texts: Sequence[str], language: str | Sequence[str], url: str | Sequence[str]
) -> list[str]:
    """Return texts without the personal data that a stage of the version finds; as they are without such a stage.

    They have one language and URL, or one each: a stage is asked once, as it first looks whether it finds what it must.
    Texts of stages before it have it still, and what a filter cut was never scrubbed. Where a model finds it, which is
    not here, WITHHELD stands for each text; so it does where a stage of the version is not known here: it may clear.
    """
    stages = [stage for stage in stages_of(root, version) if stage not in (LAND, COMPOSE)]
    shown = [*texts]
    languages, urls = ([each] * len(shown) if isinstance(each, str) else each for each in (language, url))
    for stage in (stage for stage in stages if clears_personal_data(stage) or known_card(stage) is None):
        shown = _scrubbed_by(root, version, stage, shown, languages, urls)
    return shown


def _scrubbed_by(
    root: str, version: Version, stage: str, texts: Sequence[str], languages: Sequence[str], urls: Sequence[str]
) -> list[str]:
    """Return texts without what one stage finds, WITHHELD in their place where that cannot be told here."""
    columns = {
        "text": pa.array(texts, pa.large_string()),
        "chars": pa.array([len(text) for text in texts], pa.int64()),
        "language": pa.array(languages, pa.string()),
        "url": pa.array(urls, pa.string()),
    }
    card, params = known_card(stage), read_manifest(root, version.manifests[stage]).params
    spans = card.spans if card else None
    seen = spans.conceal(params, pa.RecordBatch.from_pydict(columns)) if spans and spans.conceal else None
    return [WITHHELD.format(stage) if text else "" for text in texts] if seen is None else seen.to_pylist()
