"""Prompts: files that say what a model is to write of a text, and what such a text may change of it.

A file has front matter in YAML between two lines of three dashes, and below it what the model is told, with the mark
`{text}` once where the text comes in. All other braces are braces.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pipeline_tasks.binding import bind_fields, require_mapping
from pipeline_tasks.constraints import Limit, Weight, Word
from pipeline_tasks.errors import DigestMismatch, RecipeError
from pipeline_tasks.nearest import nearest
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.stage import NO_FILE, FilePath
from pipeline_tasks.yaml_file import parse_yaml, read_bytes

FOLDER = Path(__file__).with_name("prompts")

SHA256: Mapping[str, str] = {
    "question_answer": "c80d7d07b154a6499998c411185066540d5ea4f463f909e4950fd7534c765edf",
    "rewrite": "1187d5232c18b13e56cad4be3ba8ed1772bd2fcdaca91e9795f3f8e2e09b5de0",
    "summary": "f9d4d340d3e24e7eac45965a6799e756e3c503ad863b2685d48b3c61eb05397d",
    "table_to_text": "2083eb5ea596bcd9df4e50ea30304df3a509219411b1570f08d13fbb40527ca5",
    "translation": "aa9e1ad529312d86ef966b219f64f91d5567bc2daff25bf264f9cced3d987ca1",
}
"""SHA-256 of each prompt of the package. With others, stages that read them have another version."""

TEXT, LANGUAGE = "{text}", "{language}"
"""Marks of a prompt: where the text comes in, and the name of the language that its entry in a recipe says."""

LANGUAGES: Mapping[str, str] = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
"""Names of languages as prompts in English have them (ISO 639-1)."""

Code = Annotated[str, Word("([a-z]{2,3})?", "a code of a language, such as `de`, or empty")]

_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)^---[ \t]*\n(.*)\Z", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PromptParams:
    """A prompt of a recipe.

    `prompt` is one of the package: `question_answer`, `rewrite`, `summary`, `table_to_text` or `translation`; left out,
    that of the entry's own name. `file` is one of your own, in its place. `language` is the code of the language that
    the model writes, where a prompt asks for one (`{language}`): `translation` does.
    """

    prompt: str = ""
    file: FilePath = NO_FILE
    language: Code = ""

    def __post_init__(self) -> None:
        """Raise ValueError for a file and a name, of which one has no effect."""
        if self.prompt and self.file:
            message = "a prompt has a `prompt` of the package or a `file`, and not both; remove one"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class _FrontMatter:
    """What a file says of its prompt, as written: see `Prompt`."""

    title: str = ""
    system: str = ""
    language: Code = ""
    shortest: Weight = 0.0
    longest: Limit = inf
    leaves_out: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for lengths that no text has."""
        if self.shortest > self.longest:
            message = f"shortest is {self.shortest:g} and longest is {self.longest:g}; no text has both"
            raise ValueError(message)


class Prompt(NamedTuple):
    """What a model is told, and what its texts may change.

    `name` is that of the recipe's entry. The model gets `system` ("" for none), then `before`, the text and `after`.
    `language` is the language that it writes, "" for that of the text. A text of it has from `shortest` to `longest`
    times the characters of its source, and with `leaves_out` may say less than that.
    """

    name: str
    title: str
    system: str
    before: str
    after: str
    language: str
    shortest: float
    longest: float
    leaves_out: bool

    @property
    def digest(self) -> str:
        """32 hex digits of what the model is told: no bound on what it writes is part of it."""
        return digest_of([self.system, self.before, self.after], 32)

    def told(self, text: str) -> str:
        """Return what the model is told of a text; braces in it are braces."""
        return f"{self.before}{text}{self.after}"


def prompt_files(prompts: Mapping[str, PromptParams]) -> tuple[FilePath, ...]:
    """Return the files of one's own that prompts of a recipe name, in the order of their names."""
    return tuple(prompts[name].file for name in sorted(prompts) if prompts[name].file)


def read_prompts(prompts: Mapping[str, PromptParams]) -> tuple[Prompt, ...]:
    """Return the prompts of a recipe in the order of their names; RecipeError for a file that is none."""
    return tuple(read_prompt(name, prompts[name]) for name in sorted(prompts))


def read_prompt(name: str, params: PromptParams) -> Prompt:
    """Return a prompt; RecipeError names what is wrong with its file or its entry."""
    path = Path(params.file) if params.file else FOLDER / f"{_shipped(name, params)}.md"
    body = read_bytes(path)
    if not params.file:
        _require_released(path, body)
    try:
        text = body.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 (byte {error.start}); store it as UTF-8"
        raise RecipeError(message) from error
    return _parsed(name, params, text, str(path))


def _shipped(name: str, params: PromptParams) -> str:
    wanted = params.prompt or name
    if wanted not in SHA256:
        meant = nearest(wanted, SHA256)
        message = (
            f"prompts: {name}: the package has no prompt {wanted!r}{meant}; it has {', '.join(SHA256)}: name one of "
            "them by `prompt`, or a file of your own by `file`"
        )
        raise RecipeError(message)
    return wanted


def _require_released(path: Path, body: bytes) -> None:
    if hashlib.sha256(body).hexdigest() != SHA256[path.stem]:
        message = f"{path} is not the prompt of this release; install the package again"
        raise DigestMismatch(message)


def _parsed(name: str, params: PromptParams, text: str, where: str) -> Prompt:
    parts = _FRONT_MATTER.match(text)
    if parts is None:
        message = f"{where} has no front matter; begin with a line of three dashes, `system: ...`, and a line of dashes"
        raise RecipeError(message)
    written: Mapping[str, Any] = require_mapping(parse_yaml(parts[1].encode(), where) or {}, where)
    front = bind_fields(_FrontMatter, written, where)
    system, body = _in_language(name, params, (front.system, parts[2].strip("\n")), where)
    before, mark, after = body.partition(TEXT)
    if not mark or TEXT in after:
        count = body.count(TEXT)
        message = f"{where} has the mark {TEXT} {count} times; write it once, where the text comes in"
        raise RecipeError(message)
    language = params.language or front.language
    lengths = front.shortest, front.longest
    return Prompt(name, front.title, system, before, after, language, *lengths, front.leaves_out)


def _in_language(name: str, params: PromptParams, told: tuple[str, str], where: str) -> tuple[str, str]:
    """Return what is told, with the language's name in place of its mark; RecipeError if only one of both is there."""
    is_asked = any(LANGUAGE in part for part in told)
    if is_asked and params.language not in LANGUAGES:
        lacks = f"`language` {params.language!r} has no name here" if params.language else "its entry has no `language`"
        message = (
            f"prompts: {name}: {where} asks for a language, and {lacks}; write one of {', '.join(LANGUAGES)}, or a "
            "prompt of your own that names the language"
        )
        raise RecipeError(message)
    if params.language and not is_asked:
        message = f"prompts: {name}: {where} has no mark {LANGUAGE}; remove `language`, or write the mark there"
        raise RecipeError(message)
    system, body = (part.replace(LANGUAGE, LANGUAGES.get(params.language, "")) for part in told)
    return system, body
