"""Computes again what the model of a stage stored of a sample of documents; cards say how (`facets.Again`)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import known_card, stage_card
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.facets import Again
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.manifests import Committed
from pipeline_tasks.inspect.verify.scores import HEAL, Document, Rescored, Sample, drawn, require_comparable, states_in
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.plan import identity_of, resources_of
from pipeline_tasks.run.recipe_faults import local_params


def recomputes(manifest: Manifest) -> bool:
    """Return whether the card of a manifest's stage says how what its model stored is computed again."""
    card = known_card(manifest.stage)
    return card is not None and card.again is not None


def check_again(root: str, recipe: str, read: Committed, sample: Sample, findings: Findings) -> Iterator[Rescored]:
    """Compute what a model stored of a sample of a manifest's documents again, and yield what came of it.

    What differs is a problem where hardware of one name promises the same. A model that is not to be had is no damage
    of the root: its documents are skipped, and the reason is said.
    """
    manifest = read.manifest
    if not recomputes(manifest):
        return
    shards = (*manifest.shards, *manifest.rejects)
    counts = [Counter(rows) for rows in states_in(root, manifest, manifest.shards).hardware.values()]
    computed_by = sum(counts, Counter[str]())
    rows = sum(shard.rows for shard in shards)
    about = Rescored(read.path, manifest.stage, of=rows, computed_by=computed_by, done="computed")
    try:
        require_comparable(manifest, stage_card(manifest.stage).version, root, findings)
        again = _again(manifest, recipe)
        documents = drawn(root, shards, sample.documents, manifest.fingerprint, again.columns, again.counted)
        differing = [(document, again.differing(document.row)) for document in documents]
    except (RefineryError, OSError) as error:
        yield replace(about, skipped=str(error))
        return
    most = 0.0 if again.is_exact and {*computed_by} <= {again.hardware} else 1.0
    for document, share in differing:
        findings.count("documents computed again")
        if share > most:
            findings.add(_problem(root, document, share))
    largest = max((share for _, share in differing), default=0.0)
    yield replace(about, documents=len(documents), largest=largest, tolerance=most, hardware=again.hardware)


def _again(manifest: Manifest, recipe: str) -> Again:
    """Return what computes again, by the recipe's params; RecipeError if they are others than the manifest's."""
    step = next((step for step in load_recipe(recipe).steps if step.stage == manifest.stage), None)
    card = stage_card(manifest.stage)
    if step is None or identity_of(*resources_of(card, bind(card, step.params))) != manifest.params:
        message = (
            f"the recipe {recipe} here has other params of {manifest.stage} than the manifest; name the recipe that it "
            "was made by, with the model and files that it had"
        )
        raise RecipeError(message)
    if card.again is None:
        message = f"the card of {manifest.stage} does not say how it computes again"
        raise RecipeError(message)
    return card.again(local_params(step))


def _problem(root: str, document: Document, share: float) -> Problem:
    key = document.row.column("id")[0].as_py()
    words = f"document {key}: {share:.0%} of what its model computed comes out otherwise"
    return Problem(f"{root}/{document.shard.path}", words, "other values", "the stored ones", HEAL)
