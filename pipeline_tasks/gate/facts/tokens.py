"""Computes facts of tokens: how many bytes of text one has, by language, and whether they give the text back."""

from collections.abc import Mapping

from pipeline_tasks.gate.estimates import Facts, exact, share
from pipeline_tasks.gate.facts.columns import MIN_DOCUMENTS
from pipeline_tasks.gate.facts.subject import EMPTY, Family, Subject, profiles_of
from pipeline_tasks.manifest import Manifest


def measure_tokens(subject: Subject) -> Facts:
    """Return bytes per token, in all and by language, and the share of compared texts that come back."""
    if "lost_chars" not in subject.card.profiled:
        return {}
    profiles = profiles_of(subject.manifest)
    size, tokens = (profiles.get(name, EMPTY).get("sum") for name in ("n_bytes", "n_tokens"))
    compared = profiles.get("lost_chars", EMPTY)
    by_language = bytes_per_token(subject.manifest)
    before = bytes_per_token(subject.previous) if subject.previous else {}
    changes = [value / before[code] - 1 for code, value in by_language.items() if before.get(code)]
    return {
        "bytes_per_token": exact(size / tokens if size is not None and tokens else None),
        **{f"bytes_per_token.{code}": exact(value) for code, value in by_language.items()},
        "bytes_per_token_min": exact(min(by_language.values(), default=None)),
        "bytes_per_token_change_min": exact(min(changes, default=None)),
        "round_trip": share(compared["bins"].get("0", 0), compared["count"]),
    }


def bytes_per_token(manifest: Manifest) -> Mapping[str, float]:
    """Return the bytes of text per token of every language with enough documents."""
    profiles = profiles_of(manifest)
    documents, size, tokens = (
        profiles.get(name, EMPTY)["bins"] for name in ("language", "language_bytes", "language_tokens")
    )
    enough = [code for code, count in sorted(documents.items()) if count >= MIN_DOCUMENTS and tokens.get(code)]
    return {code: size.get(code, 0) / tokens[code] for code in enough}


TOKENS = Family(
    measure_tokens,
    {
        "bytes_per_token": "bytes of text per token, end tokens included",
        "bytes_per_token.<code>": "the same of this language, if it has 100 documents",
        "bytes_per_token_min": "the smallest of these languages",
        "bytes_per_token_change_min": "the smallest relative change of one against the previous snapshot",
        "round_trip": "share of the compared texts of which every character comes back when their tokens are decoded",
    },
)
