"""Marked texts have both texts, no more of them than is asked for, and nothing of what was redacted."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.cards import stage_card
from pipeline_tasks.inspect.document.text_edits import (
    AROUND,
    COMPARED,
    LARGE,
    LONGEST,
    MOST,
    WITHHELD,
    Piece,
    changes,
    marked,
    marked_redactions,
    scrubbed,
)
from pipeline_tasks.publish.logs import version_log
from tests.documents import documents
from tests.refining import commit_parent, refined
from tests.small_root import RECIPE, SmallRoot

WORDS = st.lists(st.sampled_from(["a", "b", "the", " ", "  ", "\n", "é", "x y"]), max_size=40).map("".join)


def shown(pieces: list[Piece]) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text) for piece in pieces]


@given(WORDS, WORDS)
def test_changes_have_both_texts_and_take_turns(before: str, after: str) -> None:
    stretches = changes(before, after)
    assert "".join(stretch.cut for stretch in stretches) == before
    assert "".join(stretch.added for stretch in stretches) == after
    assert all(a.is_same != b.is_same for a, b in pairwise(stretches))
    assert all(stretch.cut or stretch.added for stretch in stretches)


def test_words_of_a_changed_line_and_whole_lines_are_marked() -> None:
    before = "The quick brown fox.\nA line that goes.\nThe end.\n"
    after = "The slow red fox.\nThe end.\nAnd more.\n"
    assert shown(marked(before, after)) == [
        ("same", "The "),
        ("cut", "quick brown"),
        ("added", "slow red"),
        ("same", " fox."),
        ("cut", "\nA line that goes."),
        ("same", "\nThe end.\n"),
        ("added", "And more.\n"),
    ]


def test_long_stretches_are_folded_at_both_ends() -> None:
    same = "".join(f"word{at} " for at in range(AROUND))
    pieces = marked(f"{same}one {same}two {same}", f"{same}1 {same}2 {same}")
    assert [piece.kind for piece in pieces] == [
        *("left_out", "same", "cut", "added", "same", "left_out", "same", "cut", "added", "same", "left_out")
    ]
    assert [len(piece.text) for piece in pieces if piece.kind == "same"] == [AROUND] * 4
    assert sum(piece.chars for piece in pieces if piece.kind != "added") == len(f"{same}one {same}two {same}")
    [cut] = [piece for piece in marked("x" * 9 * LONGEST, "") if piece.kind == "left_out"]
    assert cut.chars == 8 * LONGEST


def test_many_changes_and_long_texts_are_bounded() -> None:
    lines = [f"line {at}\n" for at in range(1, 4 * MOST)]
    pieces = marked("".join(lines), "".join(lines[::2]))
    assert sum(piece.kind == "cut" for piece in pieces) == MOST
    assert pieces[-1].kind == "left_out"
    assert marked("a" * COMPARED + "b", "a" * COMPARED + "c") == marked("a" * COMPARED, "a" * COMPARED)
    many = "".join(f"{at}\n" for at in range(LARGE + 1))
    assert len(changes("x\n" + many + "y", "z\n" + many + "w")) == 1, "one change: comparing would take too long"


@pytest.mark.parametrize("gap", ["", " ", "\n and then "])
def test_a_redaction_is_named_and_not_shown(gap: str) -> None:
    before = f"Ask ann@a.org{gap}10.0.0.1 today"
    after = f"Ask <EMAIL>{gap}<IP> today"
    first, second = before.index("ann"), before.index("10.0")
    spots = [
        {"kind": "email", "start": first, "end": first + len("ann@a.org"), "at": after.index("<EMAIL>")},
        {"kind": "ip", "start": second, "end": second + len("10.0.0.1"), "at": after.index("<IP>")},
    ]
    pieces = marked_redactions(before, after, spots)
    assert "".join(piece.text for piece in pieces) == after
    assert [(piece.stands_for, piece.chars) for piece in pieces if piece.kind == "cut"] == [("email", 9), ("ip", 8)]
    assert [piece.text for piece in pieces if piece.kind == "added"] == ["<EMAIL>", "<IP>"]


def test_texts_are_withheld_where_a_stage_of_the_version_is_not_known_here(
    small_root: SmallRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be what clears personal data: who may see texts behind it may not see these."""
    version = version_log.versions(small_root.root, RECIPE)[0]
    assert scrubbed(small_root.root, version, ["A text."], "en", "") == ["A text."]
    known = {name: stage_card(name) for name in version.manifests if name not in ("land", "extract")}
    monkeypatch.setattr("pipeline_tasks.inspect.document.text_edits.known_card", known.get)
    assert scrubbed(small_root.root, version, ["A text.", ""], "en", "") == [WITHHELD.format("extract"), ""]


def test_texts_of_several_documents_are_scrubbed_together_as_one_by_one(tmp_path: Path) -> None:
    table = documents(["A clean text."], ["https://a.example/1"]).append_column("language", [["en"]])
    path, _ = refined(tmp_path, "scrub_pii", commit_parent(tmp_path, [table]))
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {"scrub_pii": path}, "verdicts": {}}
    root = str(tmp_path)
    version = version_log.append(root, entry | {"prefix": "", "documents": 1, "tokens": 0, "sequences": 0})
    texts, languages = ["Mail ann@firm.org now.", "Tel. +49 30 901820, bitte.", ""], ["en", "de", ""]
    urls = ["https://a.example/2", "https://b.de/", ""]
    together = scrubbed(root, version, texts, languages, urls)
    assert together == [
        scrubbed(root, version, [text], *of)[0] for text, *of in zip(texts, languages, urls, strict=True)
    ]
    assert together[0] == "Mail <EMAIL> now."
