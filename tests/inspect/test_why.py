"""Why a page is in the dataset or not: by any form of its address, id or words, over all snapshots and stages."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks import api
from pipeline_tasks.ask.question import Role
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.why import Params, answer, records
from pipeline_tasks.inspect.why.said import next_steps
from pipeline_tasks.inspect.why.sought import BEGINS, sought
from pipeline_tasks.inspect.why.story import Story
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests import small_build
from tests.archives import response, warc
from tests.small_root import DAYS, RECIPE, SmallRoot
from tests.stopped_runs import DAY, LATER, Runs
from tests.stopped_runs import RECIPE as RUNS


def facts(root: str, what: str, **params: Any) -> dict[str, Any]:
    known = answer(Params(root, what, **params)).json
    assert isinstance(known, dict)
    return known


def rows(root: str, day: str, stage: str = "", part: str = "shards") -> list[dict[str, Any]]:
    version = version_log.versions(root, RECIPE)[DAYS.index(day)]
    manifest = read_manifest(root, version.manifests[stage] if stage else version.refined)
    return [row for batch in read_shards(root, getattr(manifest, part)) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("asked", "kind", "value"),
    [
        ("https://example.org/a", "address", "https://example.org/a"),
        ("example.org/a?b=c", "address", "http://example.org/a?b=c"),
        ("//example.org", "address", "http://example.org"),
        ("localhost:8080/x", "address", "http://localhost:8080/x"),
        ("0123456789ABCDEF" * 2, "document", "0123456789abcdef" * 2),
        ("0123abcd", "document", "0123abcd"),
        ('"example.org"', "text", "example.org"),
        ("first/a note.md", "address", "file:///first/a%20note.md"),
        ("first/note.txt", "address", "file:///first/note.txt"),
        ("first/note", "text", "first/note"),
        ("some words. And more", "text", "some words. And more"),
        ("word", "text", "word"),
    ],
)
def test_what_is_asked_is_an_address_an_id_or_words(asked: str, kind: str, value: str) -> None:
    known = sought(f" {asked} ")
    assert (known.kind, known.value) == (kind, value)


def test_nothing_is_no_question(small_root: SmallRoot) -> None:
    with pytest.raises(RecipeError, match="name an address"):
        facts(small_root.root, " ")


def test_every_form_of_an_address_is_the_same_page(small_root: SmallRoot) -> None:
    row = rows(small_root.root, DAYS[1])[0]
    bare = row["url"].partition("://")[2]
    host, _, path = bare.partition("/")
    whole = facts(small_root.root, row["url"])
    assert (whole["in_dataset"], whole["records"][0]["id"]) == (True, row["id"])
    percent = "".join(f"%{ord(letter):02x}" if letter.isdigit() else letter for letter in path)
    for form in (bare, f"http://{bare}/", f"www.{bare}", f"HTTPS://{host.upper()}/{path}", f"{host}/{percent}"):
        assert (form, facts(small_root.root, form)["records"]) == (form, whole["records"])


def test_an_id_its_first_digits_and_words_lead_to_the_same_record(small_root: SmallRoot) -> None:
    row = rows(small_root.root, DAYS[1])[0]
    for asked in (row["id"], row["id"][:10], f'"{" ".join(row["text"].split()[:6])}"'):
        found = [each for each in facts(small_root.root, asked)["records"] if each["snapshot"] == DAYS[1]]
        assert [(each["id"], each["outcome"], each["url"]) for each in found] == [(row["id"], "kept", row["url"])]


def test_six_digits_are_the_beginning_of_an_id_and_a_word_is_a_word(small_root: SmallRoot) -> None:
    ids = {row["id"] for day in DAYS[:2] for row in rows(small_root.root, day)}
    name = next(each for each in sorted(ids) if re.search("[0-9]", each[:6]) and not each[:6].isdigit())
    for asked in (name[:6], name[:7].upper()):
        assert {each["id"] for each in facts(small_root.root, asked)["records"]} == {name}
    assert [sought(asked).kind for asked in ("facade", "decade", "1a2b3", "abcdef12")] == [*["text"] * 3, "document"]


def test_digits_that_no_id_or_several_begin_with_have_a_way_out(small_root: SmallRoot) -> None:
    free = next(name for at in range(100) if not facts(small_root.root, name := f"{at:02d}{at:02d}fa0")["records"])
    assert f"Nothing that landed has {BEGINS}" in str(answer(Params(small_root.root, free)))
    [*_, quoted] = [step for step in facts(small_root.root, free)["next"] if "why" in step]
    assert shlex.split(quoted.split("`")[1])[2] == f'"{free}"'
    assert any("6 digits or more" in step for step in facts(small_root.root, "1a2b")["next"])
    of = next(each for each in records.snapshots_of(small_root.root) if each.name == DAYS[1])
    both = [
        records.Record(of, "extract", "kept", f"1a2b3c{end * 26}", "https://example.org/x", "", "a", 0) for end in "01"
    ]
    told = Story(
        sought("1a2b3c"), [of], both, ["published"] * 2, [], [], [], [], [], records.Reading(), kept_only=False
    )
    assert "2 ids begin with 1a2b3c: name more digits" in next(iter(next_steps(told, small_root.root)))


def test_a_rejected_page_is_told_with_value_and_bound(small_root: SmallRoot) -> None:
    row = rows(small_root.root, DAYS[1], "extract", "rejects")[0]
    known = answer(Params(small_root.root, row["url"]))
    [record] = facts(small_root.root, row["url"])["records"]
    assert (record["stage"], record["outcome"], record["reason"]) == ("extract", "rejected", row["reason"])
    assert "min_chars 100" in record["because"]
    assert f"was rejected by `extract`: {row['reason']}" in str(known)
    assert "refinery whatif" in str(known)


def test_a_record_without_an_id_has_a_next_step_that_runs(
    small_root: SmallRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `ingest` rejects or quarantines has none; it had no next step."""
    of = next(each for each in records.snapshots_of(small_root.root) if each.name == DAYS[1])
    record = records.Record(of, "ingest", "quarantined", "", "https://example.org/x", "", "a", 0, "error:json")
    told = Story(
        sought("example.org/x"), [of], [record], ["quarantined"], [], [], [], [], [], records.Reading(), kept_only=False
    )
    [step] = next_steps(told, small_root.root)
    assert main(shlex.split(step.split("`")[1])[1:]) == 0
    assert re.search(r"error:json +1\n", capsys.readouterr().out)


@pytest.mark.parametrize("is_first", [True, False])
def test_the_root_may_stand_first(is_first: bool, small_root: SmallRoot, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["example.org/1/none", small_root.root]
    assert main(["why", *(words[::-1] if is_first else words)]) == 0
    assert "Nothing that landed has this address" in capsys.readouterr().out


def test_a_copy_is_told_with_the_document_in_its_place(small_root: SmallRoot) -> None:
    seen = [row for row in rows(small_root.root, DAYS[1], "dedup_exact", "rejects") if "seen_before" in row["reason"]]
    known = facts(small_root.root, seen[0]["url"])
    [copy] = known["replaced"]
    assert not known["in_dataset"]
    assert (copy["by"], copy["by_snapshot"]) == (seen[0]["id"], DAYS[0])
    assert copy["where"].startswith("kept by ")
    assert copy["by_url"] == json.loads(seen[0]["evidence"])["winner"]["url"]


def test_superseded_and_retracted_documents_are_told(small_root: SmallRoot) -> None:
    superseded = version_log.current(small_root.root, RECIPE, DAYS[1])
    assert superseded.superseded
    became = set()
    for row in rows(small_root.root, DAYS[0]):
        known = facts(small_root.root, row["id"])
        became |= {(each["became"], known["in_dataset"]) for each in known["replaced"]}
    assert ("superseded", False) in became
    [record, *_] = facts(small_root.root, rows(small_root.root, DAYS[2])[0]["url"])["records"]
    assert record["state"] == "retracted"
    assert "a test" in record["note"]
    printed = str(answer(Params(small_root.root, rows(small_root.root, DAYS[2])[0]["url"])))
    assert f"refinery retract --undo {DAYS[2]}" in printed


def test_what_never_landed_is_told_with_the_nearest_addresses(small_root: SmallRoot) -> None:
    known = answer(Params(small_root.root, "https://www.example.org/1/none"))
    assert "Nothing that landed has this address" in str(known)
    found = facts(small_root.root, "https://www.example.org/1/none")
    assert found["read"]["unread"] == 0
    assert 0 < len(found["nearest"]) <= 5
    assert all(each["url"].startswith("https://example.org/") for each in found["nearest"])


def test_an_id_of_ones_own_data_has_a_command_that_finds_its_document(
    small_root: SmallRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    row = rows(small_root.root, DAYS[1])[0]
    [*_, step] = facts(small_root.root, "row-5")["next"]
    [_, *words] = shlex.split(step.split("`")[3].replace("row-5", row["record_id"]))
    assert main([*words, "--recipe", RECIPE, "--version", DAYS[1]]) == 0
    assert row["id"] in capsys.readouterr().out
    assert not any("sql" in step for step in facts(small_root.root, "o'row-5")["next"])


def test_no_text_is_read_and_of_a_whole_id_one_bucket_alone(
    small_root: SmallRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = rows(small_root.root, DAYS[1])[0]
    read: list[tuple[str, tuple[str, ...]]] = []

    def reading(root: str, shards: Any, columns: Any = None) -> Any:
        read.extend((shard.path, tuple(columns)) for shard in shards)
        return read_shards(root, shards, columns)

    monkeypatch.setattr(records, "read_shards", reading)
    for asked in (row["url"], row["id"]):
        read.clear()
        found = facts(small_root.root, asked)
        told = [path for path, columns in read if columns == records.TOLD]
        first = [path for path, columns in read if columns != records.TOLD]
        assert {columns for _, columns in read} - {records.TOLD} <= {("url",), ("id", records.PARENT)}
        assert len(first) == found["read"]["shards"] == len(set(first))
        assert len(told) < len(first)
        assert "text" not in records.TOLD
    every = len(list(Path(small_root.root).rglob("*.parquet")))
    assert len(first) < every


def test_a_bound_is_said(small_root: SmallRoot) -> None:
    known = answer(Params(small_root.root, "example.org/1/none", most_bytes=1))
    assert "No record that was read has this address" in str(known)
    assert "the command without a bound reads all" in str(known)


def test_a_curator_sees_nothing_that_was_rejected(small_root: SmallRoot) -> None:
    row = rows(small_root.root, DAYS[1], "extract", "rejects")[0]
    known, other = (str(answer(Params(small_root.root, asked, role=Role.CURATOR))) for asked in (row["id"], "f" * 32))
    assert known == other
    kept = rows(small_root.root, DAYS[1])[0]
    assert facts(small_root.root, kept["id"], role=Role.CURATOR)["records"][0]["url"] == kept["url"]
    assert facts(small_root.root, rows(small_root.root, DAYS[2])[0]["url"], role=Role.CURATOR)["records"] == []


def test_a_takedown_is_told(small_root: SmallRoot, tmp_path: Path) -> None:
    root = small_build.copied(small_root, tmp_path).root
    row = rows(root, DAYS[1])[0]
    assert main(["takedown", root, "--url", row["url"], "--reason", "claim 7"]) == 0
    known = answer(Params(root, row["url"]))
    assert "It is taken down, by takedown 1" in str(known)
    assert "claim 7" in str(known)
    assert not facts(root, row["id"])["in_dataset"]
    assert "claim 7" not in str(answer(Params(root, row["url"], role=Role.CURATOR)))


def test_it_is_a_command_and_a_call(small_root: SmallRoot, capsys: pytest.CaptureFixture[str]) -> None:
    row = rows(small_root.root, DAYS[1])[0]
    assert main(["why", row["url"], small_root.root, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    known = api.ask("why", small_root.root, row["url"])
    assert printed == known.json
    assert row["url"] in known._repr_html_()
    assert row["id"] in known.documents
    with pytest.raises(RecipeError, match="did you mean 'why'"):
        api.ask("whi", small_root.root, "x")


def test_commands_that_take_no_address_or_find_none_lead_here(
    small_root: SmallRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    url, unknown = rows(small_root.root, DAYS[1])[0]["url"], "0" * 32
    assert main(["document", url, small_root.root]) == 78
    assert "`refinery why` takes the address of a page" in capsys.readouterr().err
    assert main(["document", unknown, small_root.root]) == 78
    assert f"`refinery why {unknown} {small_root.root}` looks at every snapshot" in capsys.readouterr().err
    assert main(["look", "find", small_root.root, "--url", url]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "0 places of 0 documents, 0 tokens",
        f"no training dataset has it: `refinery why {url} {small_root.root}` says what became of it",
    ]


def verdicts(root: str, what: str) -> list[tuple[str, bool]]:
    """The answer's lines and whether the page is in the dataset, for a curator and for a steward."""
    every = [answer(Params(root, what, role=role)) for role in (Role.CURATOR, Role.STEWARD)]
    return [(str(each), dict(each.json)["in_dataset"]) for each in every]  # type: ignore[call-overload]


def test_who_asks_changes_no_verdict(small_root: SmallRoot) -> None:
    every = [row["id"] for row in rows(small_root.root, DAYS[0])]
    gone = [id_ for id_ in every if not facts(small_root.root, id_)["in_dataset"]]
    assert gone
    for id_ in gone:
        for said, is_in in verdicts(small_root.root, id_):
            assert ("It is in the dataset" in said, "It is not in the dataset" in said, is_in) == (False, True, False)
    [(curator, _), (steward, _)] = verdicts(small_root.root, gone[0])
    assert "superseded it" in steward
    assert "superseded" not in curator
    assert [facts(small_root.root, gone[0], role=Role.CURATOR)[name] for name in ("replaced", "takedowns")] == [[], []]
    kept = next(id_ for id_ in every if id_ not in gone)
    assert [is_in for _, is_in in verdicts(small_root.root, kept)] == [True, True]


def test_what_is_taken_down_or_erased_is_in_no_dataset_for_anyone(small_root: SmallRoot, tmp_path: Path) -> None:
    root = small_build.copied(small_root, tmp_path).root
    row = rows(root, DAYS[1])[0]
    assert main(["takedown", root, "--url", row["url"], "--reason", "claim 7"]) == 0
    for state in ("taken down", "erased"):
        for asked in (row["url"], row["id"]):
            [(curator, _), (steward, _)] = known = verdicts(root, asked)
            assert [is_in for _, is_in in known] == [False, False]
            assert [("It is in the dataset" in said, "It is not in the dataset" in said) for said, _ in known] == [
                (False, True),
                (False, True),
            ]
            assert f"It is {state}, by takedown 1" in steward
            assert (state in curator, "takedown" in curator) == (False, False)
            told = [facts(root, asked, role=role)["records"][0]["outcome"] for role in (Role.CURATOR, Role.STEWARD)]
            assert told == ["kept", "erased" if state == "erased" else "kept"]
        if state == "taken down":
            assert main(["erase", root, "--by", "a steward"]) == 0


def test_of_several_documents_it_is_said_which_are_taken_down(small_root: SmallRoot, tmp_path: Path) -> None:
    root = small_build.copied(small_root, tmp_path).root
    words = rows(root, DAYS[1])[0]["text"].split()[0]
    every = facts(root, words)["records"]
    kept = [each for each in every if each["stands"] == "in the dataset"]
    assert len(kept) > 1
    row = next(each for each in kept if [one["id"] for one in kept].count(each["id"]) == 1)
    assert main(["takedown", root, "--document", row["id"], "--reason", "claim 7"]) == 0
    known, said = facts(root, words), str(answer(Params(root, words)))
    assert f"Document {row['id']} is taken down, by takedown 1" in said
    assert "It is taken down" not in said
    assert "documents with these words" in said
    assert known["in_dataset"]
    stands = {each["stands"] for each in known["records"] if each["id"] == row["id"] and each["outcome"] == "kept"}
    assert "in the dataset" not in stands
    assert sum(each["stands"] == "taken down" for each in known["records"]) >= 1


def test_a_takedown_of_the_other_form_of_an_address_is_no_contradiction(small_root: SmallRoot, tmp_path: Path) -> None:
    root = small_build.copied(small_root, tmp_path).root
    row = rows(root, DAYS[1])[0]
    other = f"{row['url'].replace('://', '://www.')}?A=B"
    assert main(["takedown", root, "--url", other, "--reason", "claim 7"]) == 0
    assert "It is taken down, by takedown 1 of " in str(answer(Params(root, other)))
    www = other.removesuffix("?A=B")
    assert main(["takedown", root, "--url", www, "--reason", "claim 8"]) == 0
    for said, is_in in verdicts(root, row["url"]):
        assert ("It is in the dataset" in said, "It is taken down" in said, is_in) == (True, False, True)
    assert f"The url {www} is taken down, by takedown 2" in said


def test_a_landed_day_whose_run_stopped_is_not_looked_at(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.run()
    before = str(answer(Params(runs.root, "https://a.org/none")))
    assert "It has to land first" in before
    runs.fail("ingest", "a disk is full", day=LATER)
    known, found = answer(Params(runs.root, "https://a.org/none")), facts(runs.root, "https://a.org/none")
    said = str(known)
    assert f"{LATER} landed and its run stopped at ingest: its records are not known yet" in said
    assert ("It has to land first" in said, "Nothing that landed" in said) == (False, False)
    assert "20 records of 1 snapshot were" in said
    assert (found["snapshots"], [each["snapshot"] for each in found["not_looked_at"]]) == (1, [LATER])
    assert "a disk is full" in said
    assert "not known yet" not in str(answer(Params(runs.root, "https://a.org/7")))
    assert "not known yet" in str(answer(Params(runs.root, "f" * 32)))
    assert f"{LATER}, whose run has published nothing" in str(answer(Params(runs.root, '"no such words"')))
    assert "not known yet" not in str(answer(Params(runs.root, "f" * 32, role=Role.CURATOR)))


def test_a_damaged_record_without_an_address_is_not_counted(small_root: SmallRoot) -> None:
    read = facts(small_root.root, "https://www.example.org/1/none")["read"]
    assert read["nameless"] == len(DAYS)  # each day has a line that is no JSON
    assert read["records"] == 12 * len(DAYS)
    said = str(answer(Params(small_root.root, "https://www.example.org/1/none")))
    assert f"{read['records']} records of 3 snapshots were looked at" in said


def test_a_record_of_no_page_is_not_damaged(tmp_path: Path) -> None:
    """Every archive begins with a warcinfo record, which was called damaged."""
    landing = tmp_path / "landing" / DAY
    landing.mkdir(parents=True)
    pages = [response("https://a.org/1"), response("https://a.org/2")]
    (landing / "a.warc").write_bytes(b"".join([warc("warcinfo", b"software: test"), *pages]))
    runs = Runs(tmp_path)
    runs.run()
    known = answer(Params(runs.root, "https://a.org/9"))
    assert {name: known.json["read"][name] for name in ("records", "nameless", "pageless")} == {
        "records": 2,
        "nameless": 0,
        "pageless": 1,
    }
    assert "2 records of 1 snapshot were looked at, each of them kept or rejected; 1 record has no address" in str(
        known
    )
    assert "damaged" not in str(known)


def test_a_page_of_a_trial_is_not_in_the_dataset(tmp_path: Path) -> None:
    trial = Runs(tmp_path, f"{RUNS}.trial")
    trial.run()
    for said, is_in in verdicts(trial.root, "https://a.org/7"):
        assert f"It is in a trial, which is no part of the dataset: {RUNS}.trial {DAY}." in said
        assert ("It is in the dataset" in said, is_in) == (False, False)
    Runs(tmp_path).run()
    for said, is_in in verdicts(trial.root, "https://a.org/7"):
        assert (f"It is in the dataset: {RUNS} {DAY}." in said, is_in) == (True, True)


def test_every_id_that_is_shown_is_logged(small_root: SmallRoot, tmp_path: Path) -> None:
    root = small_build.copied(small_root, tmp_path)
    small_build.build(root)
    asked = [row["id"] for row in rows(root.root, DAYS[0])]
    asked += [row["url"] for row in rows(root.root, DAYS[1], "dedup_exact", "rejects") if row["evidence"]]
    later = 0
    for what in asked:
        known, found = answer(Params(root.root, what)), facts(root.root, what)
        shown = {each["by"] for each in found["replaced"]} | {each["id"] for each in found["uses"]}
        assert shown <= {*known.documents}
        assert len(known.documents) == len({*known.documents})
        later += bool(shown - {each["id"] for each in found["records"]})
    assert later


def test_a_byte_that_is_no_text_is_refused(small_root: SmallRoot, capsys: pytest.CaptureFixture[str]) -> None:
    for asked in ("http://x\udcff.org/a", "two \udcff words"):
        with pytest.raises(RecipeError, match="no UTF-8"):
            facts(small_root.root, asked)
        assert main(["why", asked, small_root.root]) == RecipeError.exit_code
    assert "Traceback" not in capsys.readouterr().err


def test_more_values_than_params_are_refused(small_root: SmallRoot) -> None:
    with pytest.raises(RecipeError, match=r"why has 2 params \(what, most_bytes\), not 4"):
        api.ask("why", small_root.root, "x", 0, "junk", "more")
    with pytest.raises(RecipeError, match="what is given twice"):
        api.ask("why", small_root.root, "x", what="y")


def test_a_name_that_no_recipe_can_have_is_no_damage(small_root: SmallRoot) -> None:
    for name in ("look lineage", "look versions", "keep upgrade"):
        for wrong in ("..", "a/b", "x" * 80):
            with pytest.raises(RecipeError, match="recipe must be a word"):
                api.ask(name, small_root.root, recipe=wrong)
    with pytest.raises(RecipeError, match="snapshot must be a name"):
        api.ask("look lineage", small_root.root, snapshot="../x")
