"""Writes the dataset card of a training dataset, in the form that Hugging Face's hub shows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.manifest import Manifest

MOST_GROUPS = 50
"""Groups of the mixture that a card lists, the largest first."""


def card_text(index: Mapping[str, Any], compose: Manifest, plan: Sequence[Mapping[str, Any]]) -> str:
    """Return the card of a dataset from its index, its composition and the plan of its mixture."""
    return "\n".join(_lines(index, compose, plan)) + "\n"


def _lines(index: Mapping[str, Any], compose: Manifest, plan: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from front_matter(index["name"])
    yield from facts_of(index)
    yield from ("## Read it", "", "```python", "from pipeline_tasks.training.dataset import TokenDataset", "")
    yield 'for item in TokenDataset("."):  # this folder'
    yield from ('    item["input_ids"], item["cu_seqlens"]', "```", "")
    yield from origin(compose, plan)


def front_matter(name: str, more: Iterable[str] = ()) -> Iterator[str]:
    """Yield the head of a card; `more` are lines of YAML for who shows it, as which files have its rows."""
    yield from ("---", f"pretty_name: {name}", "task_categories:", "- text-generation", "tags:", "- refinery", *more)
    yield from ("---", "", f"# {name}", "")


def facts_of(index: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many tokens and sequences there are, and of what form, from an index."""
    yield (
        f"{index['tokens']:,} tokens in {index['sequences']:,} packed sequences of {index['length']:,}, "
        f"{len(index['shards']):,} shards. Ids are {index['byte_order']}-endian {index['dtype']}; "
        f"{index['pads']:,} positions are pads (id {index['pad_id']})."
    )
    if index.get("dropped"):
        yield f"{index['dropped']:,} tokens at the ends of shards filled no sequence, and are left out (`tail: drop`)."
    yield from ("", f"Tokenizer: the file of that name beside this one, SHA-256 `{index['tokenizer']}`.", "")


def origin(compose: Manifest, plan: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what a dataset was made from, and its mixture."""
    yield from ("## Made from", "")
    for version in compose.params["versions"]:
        yield f"- snapshot `{version['snapshot']}` of recipe `{version['recipe']}`: `{version['manifest']}`"
    if plan:
        yield from ("", "## Mixture", "", "| group | documents | tokens available | tokens taken | epochs |")
        yield "|---|---:|---:|---:|---:|"
        for row in sorted(plan, key=lambda row: (-row["taken"], row["group"]))[:MOST_GROUPS]:
            epochs = row["taken"] / row["available"] if row["available"] else 0.0
            group = row["group"].replace("|", "\\|") or "(none)"
            yield f"| {group} | {row['documents']:,} | {row['available']:,} | {row['taken']:,} | {epochs:.3f} |"
        if len(plan) > MOST_GROUPS:
            yield f"\n{len(plan) - MOST_GROUPS} more groups."
