"""A folder of documents is refined, and each is found by its name, told by its type and rejected with a reason."""

from collections.abc import Callable

import pytest

from pipeline_tasks.cli.main import main
from tests.chain import How, refined
from tests.file_types.office_parts import docx, p

RECIPE = """
name: folder
stages:
  ingest: {types: [html, text, office]}
  extract: {min_chars: 20}
  filter_url: {}
  filter_language: {keep: [en]}
  dedup_exact: {prefer: {type: [office, text]}}
run: {engines: {ingest: local, filter_url: local, extract: local, filter_language: local, dedup_exact: local}, error_budget: {share: 1}}
"""
TEXT = "The harbor was built by the people of the valley, and it has held for three hundred years."
FEED = b"<?xml version='1.0'?><rss version='2.0'><channel><title>News of the harbor</title></channel></rss>"

Asked = Callable[..., str]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Thirty-two texts, one of them as a Word file with a blank in its name, too, a feed, and a picture called a PDF."""
    folder = tmp_path_factory.mktemp("documents")
    landing = folder / "manuals"
    landing.mkdir()
    for at in range(30):
        (landing / f"note {at}.txt").write_text(f"{TEXT} This is what note {at} says of it.")
    (landing / "old harbor.docx").write_bytes(docx(p(f"{TEXT} This is what note 3 says of it.")))
    (landing / "of the mill").mkdir()
    (landing / "of the mill" / "wheel.txt").write_text(f"{TEXT} See mill/brook.txt, by which the wheel turns.")
    (landing / "mill").mkdir()
    (landing / "mill" / "brook.txt").write_text(f"{TEXT} The brook rose again in the night.")
    (landing / "news.rss").write_bytes(FEED)
    (landing / "picture.pdf").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (folder / "folder.yaml").write_text(RECIPE)
    return refined(str(folder / "root"), str(landing), How(str(folder / "folder.yaml"))).root


@pytest.fixture
def asked(root: str, capsys: pytest.CaptureFixture[str]) -> Asked:
    def ask(*words: str) -> str:
        capsys.readouterr()
        main([*words, root])
        return capsys.readouterr().out

    return ask


def test_a_document_is_found_by_its_name(asked: Asked) -> None:
    assert "kept" in asked("why", "note 7.txt")
    assert "Its text is that of file:///old%20harbor.docx" in asked("why", "note 3.txt")


def test_a_document_of_a_folder_within_is_found_by_its_path_and_not_by_texts_that_name_it(asked: Asked) -> None:
    told = asked("why", "mill/brook.txt")
    assert "file:///mill/brook.txt" in told
    assert "wheel.txt" not in told
    assert "file:///mill/brook.txt" in asked("why", "manuals/mill/brook.txt")


def test_a_reason_leads_to_the_stage_that_gave_it(asked: Asked) -> None:
    assert "ingest:not_html" in asked("rejects", "--reason", "ingest:not_html")
    assert "ingest:feed" in asked("rejects", "--reason", "feed")
    assert "ingest:feed" in asked("rejects")


def test_each_type_adds_up(asked: Asked) -> None:
    lines = [line.split() for line in asked("look", "types").splitlines()]
    rows = {line[0]: line[1:3] for line in lines if line and line[0] in ("text", "office", "feed")}
    assert rows["office"] == ["1", "1"]
    assert rows["text"] == ["32", "31"]
    assert rows["feed"] == ["1", "0"]
