"""Takes many sources down and erases them, and searches every object for them and for what was generated of them."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.verify.verification import Scope, verify
from tests import generated_root
from tests.backwards import installed
from tests.erased_root import ErasedRoot
from tests.generated_root import offspring, rows, url_of
from tests.root_search import Wanted, search

WHY = ("--reason", "letters", "--override", "takedown=a test", "--override", "pack=a test", "--engine", "local")

WIDTHS = ("<u2", "<i4", "<i8")


class Many(Wanted):
    """Many texts, which are looked for by words alone: numbers are read as the words of the tokens that they stand for."""

    def __init__(self, texts: Mapping[str, str], tokenizer: Path) -> None:
        super().__init__(texts, tokenizer)
        self.tokens: dict[bytes, str] = {}
        vocabulary = Tokenizer.from_file(str(tokenizer)).get_vocab()
        self._words = np.array([*sorted(vocabulary, key=lambda word: vocabulary[word]), "."])

    def in_bytes(self, body: bytes) -> set[str]:
        """Return the names of the texts that bytes have."""
        return super().in_bytes(body).union(*(super(Many, self).in_bytes(form) for form in self._spelled(body)))

    def _spelled(self, body: bytes) -> Iterator[bytes]:
        for width in WIDTHS:
            ids = np.frombuffer(body[: len(body) // np.dtype(width).itemsize * np.dtype(width).itemsize], width)
            if len(ids):
                known = np.where((ids >= 0) & (ids < len(self._words) - 1), ids, len(self._words) - 1)
                yield " ".join(self._words[known.astype(np.int64)]).encode()


def measured(folder: Path, sources: int, taken: int) -> dict[str, float]:
    """Refine and build `sources`, take `taken` of them down by id, address and site, and erase them; return counts.

    `left` are the objects that have a text of any of these or of their offspring, `kept` the texts of others that are
    still there, and `due` how many these have to be; `problems` are those that `refinery verify` finds.
    """
    with installed(folder / "site"):
        made = generated_root.make(folder, sources)
        gone = [url_of(number) for number in range(taken)]
        before = _having(made, gone)
        began = time.monotonic()
        _take_down(made, gone)
        down = time.monotonic()
        assert main(["erase", made.root, "--by", "a steward"]) == 0
        erased = time.monotonic()
        names = [name for url in gone for name in (url, offspring(url))]
        others = Many({name: text for name, text in made.texts.items() if name not in {*names}}, made.tokenizer)
        found = search(Path(made.root), others, ("tokenizers/",))
        return {
            "sources": taken,
            "offspring": taken,
            "objects_before": len(before),
            "left": len(_having(made, gone)),
            "kept": len({name for each in found.values() for name in each}),
            "due": len(others.texts),
            "problems": len(verify(made.root, Scope()).findings.problems),
            "takedown_seconds": round(down - began, 2),
            "erase_seconds": round(erased - down, 2),
        }


def _take_down(made: ErasedRoot, gone: list[str]) -> None:
    """Take one half down by the ids of sources alone, the other by their addresses."""
    ids = {row["url"]: row["id"] for row in rows(made, "extract", "url", "id")}
    listed = made.folder / "letters.txt"
    listed.write_text("\n".join([*(ids[url] for url in gone[::2]), *gone[1::2]]))
    assert main(["takedown", made.root, "--file", str(listed), *WHY]) == 0


def _having(made: ErasedRoot, gone: list[str]) -> dict[str, set[str]]:
    """Return the objects that have a text of sources or of their offspring."""
    texts = {name: made.texts[name] for url in gone for name in (url, offspring(url))}
    return search(Path(made.root), Many(texts, made.tokenizer), ("tokenizers/",))
