"""`refinery model lm` reads plain text and records, compressed or not, and names what it cannot read."""

import gzip
import json
import re
from pathlib import Path

import pytest
from refinery_models.commands.train_lm import read_texts

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.words.language_model import read_model
from tests.text.words.test_language_model import sentences


def test_text_and_records_give_the_same_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = sentences(3000)
    plain, records = tmp_path / "prose.txt", tmp_path / "prose.jsonl.gz"
    plain.write_text("\n".join(text))
    records.write_bytes(gzip.compress("\n".join(json.dumps({"text": line}) for line in text).encode()))
    for name, source in (("a.lm", plain), ("b.lm", records)):
        assert main(["model", "lm", "--lang", "en", "--output", str(tmp_path / name), str(source)]) == 0
    assert (tmp_path / "a.lm").read_bytes() == (tmp_path / "b.lm").read_bytes()
    assert read_model(str(tmp_path / "a.lm")).language == "en"
    assert "order gains" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.lm", "b.lm", "prose.jsonl.gz", "prose.txt"]


def test_an_existing_file_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "en.lm"
    model.write_bytes(b"in use")
    assert main(["model", "lm", "--lang", "en", "--output", str(model), "prose.txt"]) == RecipeError.exit_code
    assert "exists; name a new file" in capsys.readouterr().err
    assert model.read_bytes() == b"in use"


@pytest.mark.parametrize(
    ("language", "said"), [("deu", "write 'de' for 'deu'"), ("english", "no language has the code")]
)
def test_an_unknown_language_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], language: str, said: str
) -> None:
    assert main(["model", "lm", "--lang", language, "--output", str(tmp_path / "x"), "y"]) == RecipeError.exit_code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.txt", b"caf\xe9", ""),
        ("a.txt.gz", gzip.compress(b"some text")[:-9], ""),
        ("a.txt.gz", b"no gzip", ""),
        ("a.jsonl", b'{"text": "x"}\n{"text', ":2 "),
        ("a.jsonl", b'{"texts": "x"}', ":1 .*`text`"),
        ("a.jsonl", b'["x"]', ":1 .*`text`"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, place: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecipeError, match=re.escape(str(tmp_path / name)) + place):
        list(read_texts([str(tmp_path / name)]))


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.txt"):
        with pytest.raises(RecipeError, match=re.escape(str(path))):
            list(read_texts([str(path)]))
