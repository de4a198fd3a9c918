"""Measures the tokenizer that the package ships: bytes of text per token, by language, beside others.

    python benchmarks/default_tokenizer_compared.py [--input FOLDER ...] [--packages FOLDER] [--json]

Texts are what the recipe `web` keeps up to `filter_language` of the folders named, or of the snapshots of
`documents.py`, or of the demo's crawl where those are not there; each text counts once. `gpt2` and `cl100k` are
OpenAI's, out of the npm package `tiktoken`, which is downloaded once. `own_8k` and `own_32k` are trained as `tokenize`
trains, on the texts of half of the hosts. All are measured on the other half, and all but those two on the whole as
well. A ratio is the default's bytes per token over the other's: above 1 the default needs fewer tokens. Languages with
less than 5 kB are left out. Figures do not depend on the machine.
"""

import argparse
import base64
import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import default_tokenizer
import documents
import pyarrow as pa
import tiktoken

from pipeline_tasks.stages.tokenize.choosing import train
from pipeline_tasks.stages.tokenize.default import default_tokenizer as shipped
from pipeline_tasks.stages.tokenize.params import Params, Training
from pipeline_tasks.stages.tokenize.references import reference
from pipeline_tasks.text.words.byte_level import count_byte_level_words

SNAPSHOTS = documents.SNAPSHOT.parent

TIKTOKEN = default_tokenizer.Source(
    "npm",
    "tiktoken",
    "1.0.22",
    "55c339e756fdb17604f7c7e3eb35d2bcbffe4d960e8096e50285d1cefa51dd90",
    "MIT",
    "vocabularies of OpenAI",
    lambda _files: {},
)

FEWEST = 5_000
"""Bytes of a language below which it is left out."""

OWN = {"own_8k": 8192, "own_32k": 32768}

Count = Callable[[list[str]], int]
"""Counts the tokens of texts."""

Texts = Mapping[str, list[str]]


def main() -> None:
    """Print the figures; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, nargs="*", help="folders of snapshots")
    parser.add_argument("--packages", type=Path, default=default_tokenizer.PACKAGES)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    inputs = options.input or sorted(SNAPSHOTS.glob("dev-*")) or [documents.demo_crawl()]
    tables = [kept(path) for path in inputs]
    whole, learned, held_out = split(pa.concat_tables(tables))
    files = default_tokenizer.fetched(TIKTOKEN, options.packages)
    peers = {name: openai(files, file) for name, file in (("gpt2", "gpt2"), ("cl100k", "cl100k_base"))}
    default = ours(shipped().definition.decode())
    own = {name: ours(trained(learned, size)) for name, size in OWN.items()}
    figures = {"all": compared(whole, default, peers), "held_out": compared(held_out, default, peers | own)}
    for part, rows in figures.items():
        print(f"\n{part:<8}{'bytes':>10}{'default':>9}" + "".join(f"{name:>9}" for name in [*peers, *own]))
        for language, row in rows.items():
            print(f"{language:<8}{row['bytes']:>10}" + "".join(f"{row[name]:>9}" for name in row if name != "bytes"))
    print(f"\nown vocabularies are trained on {size_of(learned)} bytes")
    if options.json:
        print(json.dumps({**figures, "own_bytes": size_of(learned)}))


def kept(path: Path) -> pa.Table:
    """Return the documents of a snapshot whose language the default recipe keeps."""
    with tempfile.TemporaryDirectory() as root:
        return documents.after("filter_language", [path], Path(root), ["id", "url", "text", "language"])


def split(docs: pa.Table) -> tuple[Texts, list[str], Texts]:
    """Return different texts by language; the texts of half of the hosts; and those of the others by language."""
    whole: dict[str, list[str]] = defaultdict(list)
    held_out: dict[str, list[str]] = defaultdict(list)
    learned = []
    for row in {row["text"]: row for row in docs.to_pylist()}.values():
        host = urlsplit(row["url"]).hostname or ""
        whole[row["language"]].append(row["text"])
        if hashlib.sha256(host.encode()).digest()[0] % 2:
            held_out[row["language"]].append(row["text"])
        else:
            learned.append(row["text"])
    return whole, learned, held_out


def compared(texts: Texts, default: Count, others: Mapping[str, Count]) -> dict[str, dict[str, float]]:
    """Return by language the bytes, the default's bytes per token, and its ratios to others; large languages first."""
    rows = {}
    for language, found in sorted(texts.items(), key=lambda pair: -size_of(pair[1])):
        size = size_of(found)
        if size >= FEWEST:
            ratios = {name: round(count(found) / default(found), 2) for name, count in others.items()}
            rows[language] = {"bytes": size, "default": round(size / default(found), 2), **ratios}
    return rows


def size_of(texts: list[str]) -> int:
    """Return the bytes of texts."""
    return sum(len(text.encode()) for text in texts)


def ours(definition: str) -> Count:
    """Return what counts the tokens of a tokenizer.json."""
    encode = reference("tokenizers", definition.encode())
    return lambda texts: len(encode(pa.array(texts, pa.large_string()))[0])


def openai(files: default_tokenizer.Files, name: str) -> Count:
    """Return what counts the tokens of a vocabulary in the npm package `tiktoken`."""
    found = json.loads(files[f"package/encoders/{name}.json"])
    ranks: dict[bytes, int] = {}
    for line in found["bpe_ranks"].split("\n"):
        _mark, first, *tokens = line.split(" ")
        ranks |= {base64.b64decode(token): int(first) + place for place, token in enumerate(tokens)}
    encoding = tiktoken.Encoding(name, pat_str=found["pat_str"], mergeable_ranks=ranks, special_tokens={})
    return lambda texts: sum(map(len, encoding.encode_ordinary_batch(texts)))


def trained(texts: list[str], entries: int) -> str:
    """Return the definition of a tokenizer that is trained on texts, as `tokenize` trains."""
    words, often = count_byte_level_words([pa.array(texts, pa.large_string())])
    zeros = pa.array([0] * len(words), pa.int64())
    table = pa.table({"word": words, "count": often, "documents": zeros, "bytes": zeros})
    training = Training(vocab_size=entries)
    return train(table, Params(train=training), training).definition


if __name__ == "__main__":
    main()
