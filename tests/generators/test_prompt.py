"""Prompts are read from the package or from files of one's own; what the model is told alone is their digest."""

from pathlib import Path

import pytest

from pipeline_tasks.errors import DigestMismatch, RecipeError
from pipeline_tasks.generators import prompt
from pipeline_tasks.generators.prompt import SHA256, PromptParams, read_prompt, read_prompts
from pipeline_tasks.stage import FilePath

ASKED = ("figure", "date", "name", "unit", "not so", "Write nothing before")

OWN = "---\ntitle: Mine\nsystem: Be brief.\nshortest: 0.5\nlongest: 1.5\n---\nSay {this} of {text}, {{twice}}.\n"


def own(folder: Path, text: str = OWN, name: str = "mine.md") -> PromptParams:
    """Return a prompt of one's own."""
    (folder / name).write_text(text)
    return PromptParams(file=FilePath(str(folder / name)))


@pytest.mark.parametrize("name", sorted(SHA256))
def test_every_prompt_of_the_package_asks_for_the_text_alone(name: str) -> None:
    read = read_prompt(name, PromptParams(language="de" if name == "translation" else ""))
    told = read.told("A {text} with {braces}.")
    assert "A {text} with {braces}." in told
    assert len(read.digest) == 32
    assert [asked for asked in ASKED if asked not in told] == []
    assert 0 < read.shortest < read.longest


def test_the_language_of_a_translation_is_named() -> None:
    german, french = (read_prompt("translation", PromptParams(language=code)) for code in ("de", "fr"))
    assert "into German" in german.told("x")
    assert german.language == "de"
    assert german.digest != french.digest
    with pytest.raises(RecipeError, match="its entry has no `language`"):
        read_prompt("translation", PromptParams())
    with pytest.raises(RecipeError, match="'xx' has no name here"):
        read_prompt("translation", PromptParams(language="xx"))
    with pytest.raises(RecipeError, match=r"summary\.md has no mark"):
        read_prompt("summary", PromptParams(language="de"))


def test_braces_of_a_prompt_and_of_a_text_stay(tmp_path: Path) -> None:
    read = read_prompt("mine", own(tmp_path))
    assert read.told("{text} {0} {{}}") == "Say {this} of {text} {0} {{}}, {{twice}}."


def test_what_the_model_is_told_alone_is_the_digest(tmp_path: Path) -> None:
    first = read_prompt("mine", own(tmp_path))
    assert read_prompt("other", own(tmp_path, OWN.replace("1.5", "3"), "b.md")).digest == first.digest
    assert read_prompt("mine", own(tmp_path, OWN.replace("brief", "long"), "c.md")).digest != first.digest
    assert read_prompt("mine", own(tmp_path, OWN.replace("\n", "\r\n"), "d.md")).digest == first.digest


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Say {text}.", "no front matter"),
        (OWN.replace("{text}", "text"), "0 times"),
        (OWN.replace("{this}", "{text}"), "2 times"),
        (OWN.replace("longest: 1.5", "longest: 0.1"), "no text has both"),
        (OWN.replace("title", "titel"), "titel"),
        (OWN.replace("system: Be brief.", "system: [1]"), "system"),
    ],
)
def test_a_file_that_is_no_prompt_is_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=why) as refused:
        read_prompt("mine", own(tmp_path, text))
    assert "mine.md" in str(refused.value)


def test_prompts_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    written = {"summary": PromptParams(), "b": PromptParams("rewrite"), "a": own(tmp_path)}
    assert [each.name for each in read_prompts(written)] == ["a", "b", "summary"]


def test_an_unknown_prompt_is_refused_with_the_nearest() -> None:
    with pytest.raises(RecipeError, match=r"'sumary' \(did you mean 'summary'\?\)"):
        read_prompt("sumary", PromptParams())
    with pytest.raises(ValueError, match="not both"):
        PromptParams("summary", FilePath("a.md"))


def test_a_changed_prompt_of_the_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "summary.md").write_text(OWN)
    monkeypatch.setattr(prompt, "FOLDER", tmp_path)
    with pytest.raises(DigestMismatch, match="install the package again"):
        read_prompt("summary", PromptParams())
