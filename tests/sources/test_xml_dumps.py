"""Dumps of XML land as records of one path; a file that is cut, or would grow in memory, is refused at its line."""

import bz2
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.publish.logs import version_log
from tests.commands import Refinery
from tests.sources.pulling import Killed, digests_of, killed_after, promise_of, pull_source, records_of

PROSE = "The '''ferry''' leaves the harbor every morning, before the fog has lifted from the water & the quay."

PAGE = """
  <page>
    <title>{title}</title>
    <ns>0</ns>
    <id>{number}</id>
    <revision>
      <id>{number}0</id>
      <timestamp>2026-01-0{number}T10:00:00Z</timestamp>
      <contributor><username>Kelp</username><id>7</id></contributor>
      <model>wikitext</model>
      <format>text/x-wiki</format>
      <text bytes="9" xml:space="preserve">{text}</text>
    </revision>
  </page>"""

DUMP = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    "  <siteinfo><sitename>Ferries</sitename><base>https://wiki.example/wiki/Main_Page</base></siteinfo>"
    + PAGE.format(title="Kelp &amp; fog", number=1, text=PROSE.replace("&", "&amp;"))
    + PAGE.format(title="Ålesund?", number=2, text=f"{PROSE} Two".replace("&", "&amp;"))
    + '\n  <page><title>Fog</title><ns>0</ns><id>3</id><redirect title="Kelp &amp; fog" />'
    "<revision><id>30</id><timestamp>2026-01-03T10:00:00Z</timestamp><text>#REDIRECT</text></revision>"
    '<revision><id>31</id><timestamp>2026-01-04T10:00:00Z</timestamp><text deleted="deleted" /></revision></page>\n'
    "</mediawiki>\n"
).encode()

LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE mediawiki [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<mediawiki><page><revision><text>&b;</text></revision></page></mediawiki>
"""

OUTSIDE = b"""<!DOCTYPE mediawiki [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<mediawiki><page><revision><text>&a;</text></revision></page></mediawiki>
"""


def place_of(tmp_path: Path, body: bytes, name: str = "dump.xml") -> str:
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / name).write_bytes(body)
    return str(tmp_path / "in")


def wiki(place: str, **more: Any) -> dict[str, Any]:
    return {"files": {"place": place, "format": "mediawiki", **more}}


@pytest.mark.parametrize("name", ["dump.xml", "dump.xml.bz2"])
def test_a_revision_is_a_record_with_title_url_and_time(name: str, tmp_path: Path) -> None:
    body = DUMP if name == "dump.xml" else bz2.compress(DUMP)
    landed, _ = pull_source(wiki(place_of(tmp_path, body, name)), tmp_path / "landings")
    read = records_of(landed)
    assert [record["text"] for record in read] == [PROSE, f"{PROSE} Two", "#REDIRECT", ""]
    assert [record["url"] for record in read] == [
        "https://wiki.example/wiki/Kelp_%26_fog",
        "https://wiki.example/wiki/%C3%85lesund%3F",
        "https://wiki.example/wiki/Fog",
        "https://wiki.example/wiki/Fog",
    ]
    assert [record["record_id"] for record in read] == ["1", "2", "3", "3"]
    assert read[0]["crawled_at"] == "2026-01-01T10:00:00Z"
    about = [json.loads(record["metadata"]) for record in read]
    assert about[0] == {
        "title": "Kelp & fog", "namespace": "0", "revision": "10", "model": "wikitext", "redirect": None
    }  # fmt: skip
    assert about[2]["redirect"] == "Kelp & fog"
    assert promise_of(landed)["source"]["rows"] == 4


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (DUMP[:-200], r"line 29: .*cut or damaged"),
        (DUMP.replace(b"</title>", b"</titel>", 1), r"line 4: mismatched tag"),
        (LAUGHS, r"line 2: it declares an entity"),
        (OUTSIDE, r"line 1: it declares an entity"),
        (b"<mediawiki>" + b"<page>" * 300, r"elements in each other"),
        (b"not xml", r"line 1"),
        (b"", r"cut or damaged"),
    ],
)
def test_a_dump_that_is_damaged_or_dangerous_is_refused_at_its_line(body: bytes, named: str, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=rf"dump\.xml, {named}" if named.startswith("line") else named):
        pull_source(wiki(place_of(tmp_path, body)), tmp_path / "landings")


def test_a_record_larger_than_a_line_may_be_is_refused(tmp_path: Path) -> None:
    body = DUMP.replace(b"#REDIRECT", b"x" * (33 << 20))
    with pytest.raises(ContractError, match="a record of more than"):
        pull_source(wiki(place_of(tmp_path, body)), tmp_path / "landings")


POSTS = b"""<posts>
  <note>many <i>rows</i></note>
  <row Id="1" Body="&lt;p&gt;One &lt;b&gt;word&lt;/b&gt;&lt;/p&gt;" Score="3" />
  <row Id="2" Body="Two"><tag>kelp</tag><tag>fog</tag><owner id="9"><name>Ann</name></owner></row>
</posts>
"""


def test_elements_at_a_path_are_records_of_attributes_and_children(tmp_path: Path) -> None:
    fields = {"html": "Body", "id": "Id"}
    source = {"files": {"place": place_of(tmp_path, POSTS), "format": "xml", "record": "posts/row", "fields": fields}}
    landed, _ = pull_source(source, tmp_path / "landings")
    read = records_of(landed)
    assert [record["payload"] for record in read] == [b"<p>One <b>word</b></p>", b"Two"]
    assert [json.loads(record["metadata"]) for record in read] == [
        {"Score": "3"},
        {"tag": ["kelp", "fog"], "owner": {"id": "9", "name": "Ann"}},
    ]


def test_a_path_leads_into_children_too(tmp_path: Path) -> None:
    body = b"<a><doc><in><p>Some text.</p></in><in2>b</in2></doc></a>"
    source = {"files": {"place": place_of(tmp_path, body), "format": "xml", "record": "a/doc"}}
    landed, _ = pull_source({"files": {**source["files"], "fields": {"text": "in.p"}}}, tmp_path / "landings")
    assert [(record["text"], record["metadata"]) for record in records_of(landed)] == [("Some text.", '{"in2":"b"}')]
    with pytest.raises(RecipeError, match=r"in\.q; .*in\.p"):
        pull_source({"files": {**source["files"], "fields": {"text": "in.q"}}}, tmp_path / "others")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"record": "posts/post"}, "no element posts/post; it has posts, posts/note"),
        ({"record": ""}, "record"),
        ({"record": "a//b"}, "record"),
        ({"format": "csv", "record": "posts/row"}, "record"),
    ],
)
def test_a_path_of_no_elements_is_refused_with_those_that_there_are(
    more: dict[str, Any], named: str, tmp_path: Path
) -> None:
    place = place_of(tmp_path, POSTS)
    (tmp_path / "in" / "a.csv").write_text("text\nA\n")
    with pytest.raises(RecipeError, match=named):
        pull_source({"files": {"place": place, "format": "xml", "record": "posts/row", **more}}, tmp_path / "landings")


def test_a_killed_pull_goes_on_and_has_the_same_bytes(tmp_path: Path) -> None:
    place = place_of(tmp_path, DUMP)
    place_of(tmp_path, DUMP, "other.xml")
    with pytest.raises(Killed):
        pull_source(wiki(place), tmp_path / "landings", on_bytes=killed_after(3_500))
    landed, _ = pull_source(wiki(place), tmp_path / "landings")
    whole, _ = pull_source(wiki(place), tmp_path / "whole")
    assert digests_of(landed) == digests_of(whole)


@pytest.mark.slow
def test_a_landed_dump_is_refined(tmp_path: Path, refinery: Refinery) -> None:
    landed, _ = pull_source(wiki(place_of(tmp_path, DUMP)), tmp_path / "landings")
    recipe = tmp_path / "small.yaml"
    recipe.write_text(
        "name: small\nstages:\n  ingest: {}\n  extract: {min_chars: 20}\nrun: {partitions: 1}\ngates: {}\n"
    )
    words = ["--override", "ingest=small", "--override", "extract=small"]
    done = refinery(
        "run", "--input", landed, "--output", tmp_path / "root", "--recipe", recipe, "--engine", "local", *words
    )
    assert done.returncode == 0, done.stderr
    assert version_log.current(str(tmp_path / "root"), "small", landed.name).documents == 2
