"""Looks are sealed objects by day, that say who saw what and nothing of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError, DigestMismatch, LookRefused, RecipeError
from pipeline_tasks.store import access_log
from pipeline_tasks.store.access_log import LONGEST, NAMED, Look, looks, one_line, read_look, record

LOOK = Look(by="ada", through="page", what="search", of={"recipe": "web"}, asked="0" * 24, rows=3, documents=("a", "b"))


def test_a_look_comes_back_with_its_time(any_root: str) -> None:
    paths = [record(any_root, replace(LOOK, by=by)) for by in ("ada", "bob", "ada")]
    known = list(looks(any_root))
    assert [look.by for look in known] == ["ada", "bob", "ada"]
    assert replace(known[0], at="", nonce="") == LOOK
    assert [path.split("/")[:2] for path in paths] == [["access", look.at[:10]] for look in known]
    assert list(looks(any_root, since="9999-01-01")) == []
    assert list(looks(any_root, since=known[0].at[:10])) == known


def test_equal_looks_at_one_moment_are_two(tmp_path: Path) -> None:
    assert len({record(str(tmp_path), LOOK) for _ in range(200)}) == 200
    assert len(list(looks(str(tmp_path)))) == 200


def test_an_entry_is_small_whatever_is_shown(tmp_path: Path) -> None:
    many = replace(LOOK, documents=tuple(f"{at:032x}" for at in range(5000)), rows=5000, purpose="p" * 10_000)
    path = record(str(tmp_path), replace(many, of={"recipe": "r" * 10_000}))
    look = read_look(str(tmp_path), path)
    assert (len(look.documents), look.rows, len(look.purpose)) == (NAMED, 5000, LONGEST)
    assert (tmp_path / path).stat().st_size < 4096


@pytest.mark.parametrize("damage", ["changed", "renamed", "moved to a time", "moved to a day", "cut", "other fields"])
def test_a_damaged_entry_is_named(damage: str, tmp_path: Path) -> None:
    path = tmp_path / record(str(tmp_path), LOOK)
    body, target = path.read_bytes(), path
    if damage == "renamed":
        target = path.with_name(
            path.name[:13] + path.name[13:37].translate(str.maketrans("0123456789abcdef", "123456789abcdef0")) + ".json"
        )
    elif damage == "moved to a time":
        target = path.with_name(f"{(int(path.name[:12]) + 1) % 10**12:012}" + path.name[12:])
    elif damage == "moved to a day":
        target = tmp_path / "access" / "2020-01-01" / path.name
    path.unlink()
    target.parent.mkdir(exist_ok=True)
    fields = json.loads(body)
    del fields["documents"]
    bodies = {"changed": body.replace(b"ada", b"eve"), "cut": body[:-9], "other fields": access_log.seal(fields)}
    target.write_bytes(bodies.get(damage, body))
    kind = DigestMismatch if damage == "changed" else ContractError
    with pytest.raises(kind, match=target.name):
        list(looks(str(tmp_path)))


def test_a_place_that_cannot_be_written_refuses_the_look(tmp_path: Path) -> None:
    (tmp_path / "access").write_text("a file where the folder has to be")
    with pytest.raises(LookRefused, match="access"):
        record(str(tmp_path), LOOK)


def test_purposes_are_demanded_where_the_setting_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFINERY_ACCESS_LOG", "purposes")
    for nothing in ("", "  \n", "\x00\x1b"):
        with pytest.raises(LookRefused, match="REFINERY_PURPOSE"):
            record(str(tmp_path), replace(LOOK, purpose=nothing))
    assert not (tmp_path / "access").exists()
    record(str(tmp_path), replace(LOOK, purpose="claim 7"))
    assert [look.purpose for look in looks(str(tmp_path))] == ["claim 7"]


def test_which_roots_are_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFINERY_ACCESS_LOG", raising=False)
    assert [access_log.is_logged(root) for root in ("s3://b/root", "/root", "file:///root")] == [True, False, False]
    monkeypatch.setenv("REFINERY_ACCESS_LOG", "on")
    assert access_log.is_logged("/root")
    for mistyped in ("purpose", "off", "0", "ON"):
        monkeypatch.setenv("REFINERY_ACCESS_LOG", mistyped)
        with pytest.raises(RecipeError, match="REFINERY_ACCESS_LOG"):
            access_log.is_logged("/root")


@given(st.text())
def test_a_purpose_is_one_line_that_a_terminal_can_show(words: str) -> None:
    line = one_line(words)
    assert line.isprintable()
    assert len(line) <= LONGEST
    assert one_line(line) == line or not line.strip()
