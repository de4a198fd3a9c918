"""Collects real prose, in several languages, from installed Python packages."""

import gzip
import html
import importlib.util
import json
import re
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from pipeline_tasks.errors import RecipeError

PACKAGES = (
    "pandas",
    "numpy",
    "scipy",
    "sqlalchemy",
    "ray",
    "pyspark",
    "airflow",
    "numba",
    "great_expectations",
    "altair",
)
LANGUAGES = ("de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "tr", "zh-CN")
_PER_PACKAGE = 900_000  # characters of prose taken from one package at most, so that no voice drowns the others
_WORDS = range(14, 160)
_DOCSTRING = re.compile(r'^\s*[rR]?"""(.*?)"""', re.DOTALL | re.MULTILINE)
_MARKUP = re.compile(
    r":[a-z:+]+:`~?([^`<]*)(?:<[^`]*>)?`|``([^`]*)``|"
    r"`([^`<]*?)(?: <[^`]*>)?`_{0,2}|\*\*?([^*]+)\*\*?"
)
_NOT_PROSE = re.compile(
    r">>>|[{}|@\\<>~^$]|::|https?:|\d{3}[ .-]\d{3}|\.\. |--|\d\.\d+\.\d|(?:^|[\s(])[._]\w|^\w+:\s|javascript"
)
_TAG = re.compile(r"<[^>]*>")
_SENTENCE = 40  # characters; shorter interface texts are labels
_SKIPPED = frozenset({"tests", "test", "_vendor", "vendored", "_examples", "testing"})


@cache
def english() -> Mapping[str, Sequence[str]]:
    """Return paragraphs of docstrings by package, in the order of their files; each paragraph occurs once."""
    seen: set[str] = set()
    prose: dict[str, Sequence[str]] = {}
    for name in PACKAGES:
        folder, size = _folder(name), 0
        paragraphs: list[str] = []
        for path in sorted(folder.rglob("*.py")):
            if _SKIPPED & set(path.relative_to(folder).parts) or size > _PER_PACKAGE:
                continue
            fresh = [text for text in dict.fromkeys(_docstrings(path)) if text not in seen]
            seen.update(fresh)
            paragraphs += fresh
            size += sum(map(len, fresh))
        prose[name] = paragraphs
    prose["aws"] = [text for text in dict.fromkeys(_manuals()) if text not in seen]
    return prose


def _folder(package: str) -> Path:
    """Return where `package` is installed, without importing it; every one is among the requirements."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        message = f"the demo reads its prose from {package}, which is not installed; run `make demo` or install it"
        raise RecipeError(message)
    return Path(next(iter(spec.submodule_search_locations)))


def _manuals() -> Iterator[str]:
    """Yield paragraphs of the service manuals that botocore carries, one service in eight."""
    for path in sorted(_folder("botocore").glob("data/*/*/service-2.json.gz"))[::8]:
        for block in _TAG.split(" ".join(_documentation(json.loads(gzip.decompress(path.read_bytes()))))):
            text = " ".join(html.unescape(block).split())
            if _is_prose(text):
                yield text


def _documentation(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "documentation" and isinstance(value, str):
                yield re.sub(r"</?(?:a|b|i|code|em|strong|fullname)\b[^>]*>", "", value)
            else:
                yield from _documentation(value)


def _docstrings(path: Path) -> Iterator[str]:
    source = path.read_text("utf-8", errors="replace")
    for match in _DOCSTRING.finditer(source):
        for block in re.split(r"\n\s*\n", textwrap.dedent("    " + match.group(1))):
            text = " ".join(_MARKUP.sub(lambda match: next(filter(None, match.groups()), ""), block).split())
            if _is_prose(text):
                yield text


def _is_prose(text: str) -> bool:
    """Whether a block is a paragraph of sentences; what most blocks fail is looked at first."""
    return (
        text[:1].isupper()
        and text.endswith(".")
        and len(text.split()) in _WORDS
        and _NOT_PROSE.search(text) is None
        and sum(map(str.isalpha, text)) + text.count(" ") >= 0.88 * len(text)
    )


def foreign() -> dict[str, list[str]]:
    """Return sentences by language, from the translations that Airflow's web interface carries."""
    folders = sorted(_folder("airflow").glob("ui/**/i18n/locales"))
    prose = {}
    for language in LANGUAGES:
        limit = _SENTENCE // 3 if language in ("ja", "ko", "zh-CN") else _SENTENCE
        texts = dict.fromkeys(text for folder in folders[:1] for text in _translations(folder / language))
        prose[language] = [text for text in texts if len(text) >= limit]
    return {language: texts for language, texts in prose.items() if texts}


def _translations(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.json")):
        yield from _strings(json.loads(path.read_text("utf-8")))


def _strings(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for value in node.values():
            yield from _strings(value)
    elif isinstance(node, str):
        yield re.sub(r"\{\{[^}]*\}\}", "7", re.sub(r"<[^>]*>", "", node)).strip()


def listings() -> list[str]:
    """Return pieces of source code, 40 lines each, of the standard library."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    pieces: list[str] = []
    for name in ("argparse.py", "ast.py", "bdb.py", "calendar.py", "cmd.py", "codecs.py", "configparser.py", "csv.py"):
        lines = (folder / name).read_text("utf-8").splitlines()
        pieces += ["\n".join(lines[at : at + 40]) for at in range(0, len(lines) - 40, 40)]
    return pieces
