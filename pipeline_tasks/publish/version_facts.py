"""What a version's entry in the log says of its manifests: where its files are, and how much it has.

`inspect.verify` computes it again.
"""

from collections.abc import Mapping

from pipeline_tasks.cards import has_sequences
from pipeline_tasks.manifest import Manifest, in_order
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.store.reading import published_documents


def prefix_of(recipe: str, by_stage: Mapping[str, Manifest]) -> str:
    """Return the prefix of the published files of manifests."""
    fingerprints = {stage: manifest.fingerprint for stage, manifest in by_stage.items()}
    return f"publish/{digest_of(fingerprints | {'recipe': recipe})}"


def sizes_of(by_stage: Mapping[str, Manifest]) -> dict[str, int]:
    """Return the documents, tokens and sequences of a version."""
    documents = published_documents(in_order(by_stage).values())
    packed = next((manifest for stage, manifest in by_stage.items() if has_sequences(stage)), None)
    if packed is None:
        return {"documents": documents, "tokens": 0, "sequences": 0}
    return {"documents": documents, "tokens": packed.tokens, "sequences": packed.rows}


def saved_history(manifests: Mapping[str, Manifest]) -> tuple[str, ...]:
    """Return the stages that saved history."""
    return tuple(sorted(stage for stage, manifest in manifests.items() if manifest.history_shards))


def is_partial(manifests: Mapping[str, Manifest]) -> bool:
    """Return whether a partition of some stage was quarantined."""
    return any(manifest.poison for manifest in manifests.values())
