"""Held-out documents: their tokens and bytes, and how much of each an arm has."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

NGRAM = 13
"""Tokens of a stretch that two texts rarely have in common by chance (GPT-3, appendix C)."""

MOST_SHARED = 0.1
"""Share of a document's stretches that an arm may have: quotations and menus are fewer."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Documents to be scored: their tokens one after the other with n + 1 offsets, and what is known of each.

    `scored_from` is the first token of each document that counts, and `sizes` are the UTF-8 bytes that count.
    """

    tokens: Ids
    offsets: npt.NDArray[np.int64]
    scored_from: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.float64]
    domains: tuple[str, ...]
    languages: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.sizes)

    def document(self, number: int) -> Ids:
        """Return the tokens of a document."""
        return self.tokens[self.offsets[number] : self.offsets[number + 1]]

    def taken(self, keep: npt.NDArray[np.bool_]) -> "HeldOut":
        """Return the documents that `keep` says."""
        numbers = np.flatnonzero(keep).tolist()
        tokens, offsets = joined([self.document(number) for number in numbers])
        return HeldOut(
            tokens,
            offsets,
            self.scored_from[numbers],
            self.sizes[numbers],
            tuple(self.domains[number] for number in numbers),
            tuple(self.languages[number] for number in numbers),
        )

    def save(self, path: Path) -> None:
        """Write the documents, in a form that needs numpy alone to be read."""
        with path.open("wb") as stream:
            np.savez(
                stream,
                tokens=self.tokens,
                offsets=self.offsets,
                scored_from=self.scored_from,
                sizes=self.sizes,
                domains=np.array(self.domains, np.str_),
                languages=np.array(self.languages, np.str_),
            )


def halves(held_out: HeldOut) -> tuple[Mask, Mask]:
    """Return the documents that choose among arms, and of those that judge what was chosen.

    Every other document of each domain and language is of the same half: what is chosen is the best for the documents
    that chose it, whether it is any better or not.
    """
    ranks: dict[tuple[str, str], int] = {}
    judges = np.zeros(len(held_out), np.bool_)
    for number, group in enumerate(zip(held_out.domains, held_out.languages, strict=True)):
        rank = ranks.get(group, len(ranks))
        judges[number] = rank % 2 == 0
        ranks[group] = rank + 1
    return ~judges, judges


def joined(parts: Sequence[Ids]) -> tuple[Ids, npt.NDArray[np.int64]]:
    """Return documents one after the other, and their n + 1 offsets.

    `flat` of `stages.tokenize.references` does it, too, and needs libraries that a machine for training may not have.
    """
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.concatenate(parts) if parts else np.empty(0, np.int32), offsets


def load_held_out(path: Path) -> HeldOut:
    """Return documents that were saved."""
    with np.load(path) as stored:
        return HeldOut(
            stored["tokens"],
            stored["offsets"],
            stored["scored_from"],
            stored["sizes"],
            tuple(stored["domains"].tolist()),
            tuple(stored["languages"].tolist()),
        )


# --- Decontamination ----------------------------------------------------------------------------------------------


def stretch_hashes(tokens: Ids) -> Hashes:
    """Return a hash for each stretch of `NGRAM` tokens; none for fewer tokens."""
    count = len(tokens) - NGRAM + 1
    if count <= 0:
        return np.empty(0, np.uint64)
    hashes = np.zeros(count, np.uint64)
    for at in range(NGRAM):
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes ^= tokens[at : at + count].astype(np.uint64) + np.uint64(1)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def shared_with(held_out: HeldOut, sequences: Iterable[Ids]) -> npt.NDArray[np.float64]:
    """Return which share of each document's stretches is in packed sequences of an arm."""
    by_document = [stretch_hashes(held_out.document(number)) for number in range(len(held_out))]
    wanted = np.unique(np.concatenate(by_document)) if by_document else np.empty(0, np.uint64)
    is_there = np.zeros(len(wanted), np.bool_)
    if len(wanted):
        for tokens in sequences:
            hashes = stretch_hashes(tokens)
            places = np.minimum(np.searchsorted(wanted, hashes), len(wanted) - 1)
            is_there[places[wanted[places] == hashes]] = True
    shares = np.zeros(len(held_out), np.float64)
    for number, hashes in enumerate(by_document):
        if len(hashes):
            shares[number] = is_there[np.searchsorted(wanted, hashes)].mean()
    return shares
