"""`refinery look duplicates`: the cluster of a document over all days, with evidence and differences."""

import json
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refinery_study.read.pairs import drawn_pairs

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.document.duplicates import Cluster, duplicates, text_of
from pipeline_tasks.inspect.document.word_differences import changes, side_by_side
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.report.survivors import Document, Pair, Tally, tallies
from pipeline_tasks.text.page.identity import identity
from tests.chain import reply
from tests.scorers.networks import static_folder

RECIPE = "web"
STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ingest", {}),
    ("extract", {"min_chars": 5}),
    ("dedup_url", {"buckets": 2}),
    ("dedup_exact", {"buckets": 2}),
    ("dedup_minhash", {"buckets": 2, "policy": ["longest", "lowest_id"]}),
)

DRAWS = random.Random(5)
BASE = [f"word{DRAWS.randrange(10**6)}" for _ in range(90)]
STORY = " ".join(BASE)
COPY = " ".join([*BASE[:40], "changed", *BASE[41:-1]])
LONGER = f"{STORY} and a later end"
OTHER = "A page about something else altogether, that nobody copied."
NEWER = "A page about something else altogether, that somebody wrote anew."


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two published days: equal, near and outdated pages on the first, a better copy of them on the second."""
    place = tmp_path_factory.mktemp("days")
    days = {
        "2026-11-19": [("/story", STORY), ("/copy", COPY), ("/equal", STORY), ("/other?utm_id=1", "An older state."), ("/other", OTHER)],
        "2026-11-20": [("/longer", LONGER), ("/other", NEWER)],
    }  # fmt: skip
    for day, pages in days.items():
        (place / day).mkdir()
        lines = [
            {"text": text, "url": f"https://example.org{path}", "date": f"{day}T0{at}:00:00Z"}
            for at, (path, text) in enumerate(pages)
        ]
        (place / day / "pages.jsonl").write_text("\n".join(map(json.dumps, lines)))
        publish(str(place / "root"), place / day)
    return str(place / "root")


def publish(root: str, uri: Path, *more: tuple[str, dict[str, Any]]) -> None:
    landed = reply("land", root=root, input=str(uri), recipe=RECIPE)
    named = {"root": root, "recipe": RECIPE, "snapshot": landed["snapshot"]}
    history = reply("history", **named)["history"]
    named["landing"] = landed["landing"]
    parent = landed["manifest"]
    manifests = {"land": parent}
    for stage, params in (*STEPS, *more):
        request = {"stage": stage, "params": params, "parent": parent, "history": history.get(stage, [])}
        parent = manifests[stage] = reply("refine", **named, **request)["manifest"]
    reply("publish", **named, manifests=manifests)


def became(cluster: Cluster) -> dict[str, str]:
    return {
        f"{member.snapshot[-2:]}{str(member.url).removeprefix('https://example.org')}": member.became
        for member in cluster.members
    }


WHOLE = {
    "20/longer": "kept",
    "19/story": "superseded",
    "19/copy": "dedup_minhash:near_duplicate",
    "19/equal": "dedup_exact:duplicate",
}


@pytest.mark.parametrize("text", [STORY, COPY, LONGER])
def test_every_member_leads_to_the_whole_cluster(root: str, text: str) -> None:
    cluster = duplicates(root, RECIPE, identity(text))
    assert became(cluster) == WHOLE
    assert cluster.winner is not None
    assert (cluster.winner.id, cluster.winner.snapshot) == (identity(LONGER), "2026-11-20")
    assert cluster.asked.id == identity(text)


def test_removals_carry_their_proof(root: str) -> None:
    by_became = {member.became: member for member in duplicates(root, RECIPE, identity(STORY)).members}
    copy = by_became["dedup_minhash:near_duplicate"]
    assert (copy.winner, copy.near, copy.winner_snapshot) == (identity(STORY), identity(STORY), "2026-11-19")
    assert copy.similarity is not None
    assert 0.8 <= copy.similarity < 1
    assert copy.bands
    superseded = by_became["superseded"]
    assert (superseded.winner, superseded.winner_snapshot) == (identity(LONGER), "2026-11-20")
    assert superseded.similarity is not None
    equal = by_became["dedup_exact:duplicate"]
    assert (equal.winner, equal.similarity) == (identity(STORY), None)


def test_texts_are_those_that_were_compared(root: str) -> None:
    cluster = duplicates(root, RECIPE, identity(COPY))
    assert {text_of(root, RECIPE, member) for member in cluster.members} == {STORY, COPY, LONGER}


def test_the_states_of_a_url_are_a_cluster(root: str) -> None:
    cluster = duplicates(root, RECIPE, identity(OTHER))
    assert became(cluster) == {
        "20/other": "kept", "19/other": "outdated", "19/other?utm_id=1": "dedup_url:older",
    }  # fmt: skip
    assert cluster.winner is not None
    assert cluster.winner.id == identity(NEWER)


def test_the_command_shows_the_difference(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", "duplicates", identity(COPY)[:10], root]) == 0
    output = capsys.readouterr().out
    assert "near_duplicate (winner" in output
    assert "bands shared" in output
    assert "4 documents, 1 of them in the dataset" in output
    assert "[changed]" in output
    assert f"[{BASE[40]}]" in output
    assert main(["look", "duplicates", identity(LONGER), root, "--limit", "1"]) == 0
    output = capsys.readouterr().out
    assert "... and 2 more (--limit)" in output
    assert main(["look", "duplicates", identity(LONGER), root, "--json"]) == 0
    assert {member["became"] for member in json.loads(capsys.readouterr().out)["members"]} == set(WHOLE.values())


@pytest.fixture(scope="module")
def third_day(root: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The root after a day with a shorter copy, of one whole sentence, which loses to the second day's page."""
    place = tmp_path_factory.mktemp("third")
    shutil.copytree(root, place / "root")
    (place / "2026-11-21").mkdir()
    line = {"text": SENTENCE, "url": "https://example.org/again", "date": "2026-11-21T00:00:00Z"}
    (place / "2026-11-21/pages.jsonl").write_text(json.dumps(line))
    publish(str(place / "root"), place / "2026-11-21")
    return str(place / "root")


SENTENCE = f"{' '.join(BASE[6:])} (ends.)"
AUDITED = {
    "2026-11-19": (COPY, STORY, {"length": 0, "whole sentences": 0, "date": 1}),
    "2026-11-20": (STORY, LONGER, {"length": 0, "whole sentences": 0, "date": -1}),
    "2026-11-21": (SENTENCE, LONGER, {"length": -1, "whole sentences": 1, "date": 1}),
}
"""By day: what lost, what is kept in its place, and of which of the two has more; the second day superseded a page."""


@pytest.mark.parametrize("day", AUDITED)
def test_an_audit_of_survivors_says_what_the_losers_had_more(
    third_day: str, day: str, capsys: pytest.CaptureFixture[str]
) -> None:
    loser, winner, more = AUDITED[day]
    version = version_log.current(third_day, RECIPE, day)
    [pair] = drawn_pairs(third_day, version, 9, 1)
    assert (pair.loser.text, pair.winner.text, pair.more()) == (loser, winner, more)
    assert pair.superseded == (day == "2026-11-20")
    report = next(Path(third_day, file.path).read_text() for file in version.files if "/report-" in file.path)
    table = report.partition("Audit of survivors")[2].partition("</table>")[0]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", table)
    assert cells == [str(c) for kind, n in more.items() for c in (kind, 1, int(n > 0), int(n < 0), int(n == 0))]
    assert main(["read", third_day, "--recipe", RECIPE, "--snapshot", day, "--pairs", "9"]) == 0
    shown = capsys.readouterr().out
    assert "removed" in shown.splitlines()[2] or pair.superseded
    assert f"{identity(loser)[:12]} of {pair.loser.snapshot}" in shown
    assert "known of no pair" in shown


def test_pairs_whose_texts_are_gone_are_left_out(third_day: str) -> None:
    version = version_log.current(third_day, RECIPE, "2026-11-21")
    assert len(drawn_pairs(third_day, version, 1, 7)) == 1
    version_log.retract(third_day, RECIPE, "2026-11-20")
    assert drawn_pairs(third_day, version, 9, 1) == []


def test_a_pair_compares_scores_where_both_have_one() -> None:
    of = Document("a", "s", "", "en", "", "A line.\nAnother one", 0.5)
    better = replace(of, score=0.6, text='"A line."\nAnother one!')
    pair = Pair("dedup_minhash", better, of, "a", 0.9, superseded=False)
    assert pair.more() == {"length": 1, "whole sentences": 1, "score": 1}
    assert tallies([pair, replace(pair, loser=replace(of, score=None))]) == [
        Tally("length", 2, 1, 0),
        Tally("whole sentences", 2, 1, 0),
        Tally("score", 1, 1, 0),
    ]


def test_an_unknown_id_is_refused_with_the_known_snapshots(root: str) -> None:
    with pytest.raises(RecipeError, match=r"'ffff0000'.*2026-11-19, 2026-11-20"):
        duplicates(root, RECIPE, "ffff0000")
    with pytest.raises(RecipeError, match="'story'"):
        duplicates(root, RECIPE, "story")
    with pytest.raises(RecipeError, match="'/no/such/root'"):
        duplicates("/no/such/root", RECIPE, "/no/such/root")
    with pytest.raises(RecipeError, match=r"recipe demo .*: web\)"):
        duplicates(root, "demo", identity(STORY))


def test_a_document_that_a_later_stage_rejected_is_not_counted_in_the_dataset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, day = str(tmp_path / "root"), tmp_path / "2026-11-19"
    day.mkdir()
    wrote = f"{STORY} and write to ada.lovelace@example.org"
    lines = [{"text": text, "url": f"https://example.org/{at}"} for at, text in enumerate((wrote, STORY, OTHER))]
    (day / "pages.jsonl").write_text("\n".join(map(json.dumps, lines)))
    publish(root, day, ("scrub_pii", {"action": "drop"}))
    cluster = duplicates(root, RECIPE, identity(STORY))
    assert cluster.winner is not None
    assert (cluster.winner.id, cluster.winner.became, cluster.winner.lost) == (identity(wrote), "kept", "scrub_pii:pii")
    assert main(["look", "duplicates", identity(STORY), root]) == 0
    output = capsys.readouterr().out
    assert "kept, then rejected: scrub_pii:pii" in output
    assert "2 documents, 0 of them in the dataset" in output
    assert duplicates(root, RECIPE, identity(OTHER)).asked.published


def test_an_id_that_an_earlier_stage_rejected_names_that_stage(tmp_path: Path) -> None:
    root, day = str(tmp_path / "root"), tmp_path / "2026-11-19"
    day.mkdir()
    lines = [{"text": STORY, "url": "https://example.org/1"}, {"text": "tiny", "url": "https://example.org/2"}]
    (day / "pages.jsonl").write_text("\n".join(map(json.dumps, lines)))
    publish(root, day)
    rejected = rf"{identity('tiny')}.* extract of 2026-11-19 .*: extract:too_short, https://example\.org/2"
    with pytest.raises(RecipeError, match=rejected):
        duplicates(root, RECIPE, identity("tiny"))
    publish(root, tmp_path.joinpath("2026-11-19").rename(tmp_path / "2026-11-20"))
    version_log.retract(root, RECIPE, "2026-11-19")
    with pytest.raises(RecipeError, match=r"'ffff0000'.* 2026-11-20; retracted,.*: 2026-11-19"):
        duplicates(root, RECIPE, "ffff0000")


def test_a_shortened_id_must_be_the_only_one(tmp_path: Path) -> None:
    texts: dict[str, str] = {}
    for number in range(2000):
        text = f"page number {number}"
        first = identity(text)[:4]
        if first in texts:
            break
        texts[first] = text
    (tmp_path / "day").mkdir()
    (tmp_path / "day/pages.jsonl").write_text("\n".join(json.dumps({"text": page}) for page in (text, texts[first])))
    publish(str(tmp_path / "root"), tmp_path / "day")
    with pytest.raises(RecipeError, match=f"^2 .*'{first}' .*{min(map(identity, (text, texts[first])))}"):
        duplicates(str(tmp_path / "root"), RECIPE, first)
    assert version_log.recipes(str(tmp_path / "root")) == [RECIPE]
    cluster = duplicates(str(tmp_path / "root"), RECIPE, identity(text)[:12])
    assert (cluster.asked, len(cluster.members)) == (cluster.winner, 1)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("a b c", "a b c", []),
        ("a  b\n\nc", "a b c", []),
        ("a b c d", "a x c d", [("b", "x")]),
        ("one\ntwo words\nthree", "one\nthree", [("two words", "")]),
        ("", "new text", [("", "new text")]),
        ("a b\nc d\ne", "a b\nc x\ne f", [("d", "x"), ("", "f")]),
    ],
)
def test_differences_are_of_words(left: str, right: str, expected: Sequence[tuple[str, str]]) -> None:
    assert [(change.left, change.right) for change in changes(left, right)] == expected


def test_changes_are_shown_in_two_columns() -> None:
    lines = list(side_by_side("the old boat sailed", "the new boat sailed", ("left", "right"), width=43))
    assert lines == [
        "left                 | right",
        "... the [old] boat   | ... the [new] boat",
        "sailed ...           | sailed ...",
        "                     |",
    ]
    assert list(side_by_side("same words", "same\nwords", ("l", "r"))) == ["the same words in the same order"]
    many = "".join(f"w{n} " + "x " * 20 for n in range(30))
    assert list(side_by_side(many, many.replace("w", "v"), ("l", "r"), most=3))[-1] == "... and 27 more places"
    huge = " ".join(f"w{n}" for n in range(3000))
    (only,) = changes(huge, huge.replace("w", "v"))
    assert len(only.left.split()) == 3000


def test_a_cluster_has_documents_that_say_the_same_over_days(tmp_path: Path) -> None:
    """Kept by all stages that compare words, and rejected or superseded by the one that compares vectors."""
    days = {"2026-11-19": ["good river road", "stone tree wind"], "2026-11-20": ["road good river", "river road good"]}
    same = ("longest", "lowest_id")
    more = (
        ("embed", {"model": static_folder(tmp_path / "model")}),
        ("dedup_semantic", {"buckets": 2, "policy": list(same)}),
    )
    for day, texts in days.items():
        (tmp_path / day).mkdir()
        lines = [
            {"text": text, "url": f"https://example.org/{text[-4:]}", "date": f"{day}T00:00:00Z"} for text in texts
        ]
        (tmp_path / day / "pages.jsonl").write_text("\n".join(map(json.dumps, lines)))
        publish(str(tmp_path / "root"), tmp_path / day, *more)
    ids = {text: identity(text) for texts in days.values() for text in texts}
    first = min(ids[text] for text in ("good river road", "road good river", "river road good"))
    clusters = [duplicates(str(tmp_path / "root"), RECIPE, ids[text]) for text in ids if text != "stone tree wind"]
    for cluster in clusters:
        outcomes = {member.id: member.became for member in cluster.members}
        assert outcomes[first] == "kept"
        assert len(outcomes) == 3
        assert set(outcomes.values()) <= {"kept", "superseded", "dedup_semantic:near_duplicate"}
        assert cluster.winner is not None
        assert cluster.winner.id == first
    alone = duplicates(str(tmp_path / "root"), RECIPE, ids["stone tree wind"])
    assert [member.became for member in alone.members] == ["kept"]
