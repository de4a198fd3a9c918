"""Computes facts of a whole snapshot, from what landed to what is published, for the gate before it is published."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline_tasks.cards import has_sequences, is_stage, makes_documents, stage_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.estimates import Facts, exact, share
from pipeline_tasks.gate.facts.amounts import Amounts, count_amount, share_amount
from pipeline_tasks.gate.facts.drift import snapshot_drift
from pipeline_tasks.gate.facts.rows import chosen, no_pages
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.distributions import DISTRIBUTIONS
from pipeline_tasks.profiles.origins import generated_kept, generated_removed
from pipeline_tasks.store.reading import published_documents, read_in_order

NO_LOSS = ("copies", "surplus")
"""Removals that are no loss: another document has the text, of this snapshot or an earlier one; or the recipe's
own mixture leaves it out. They passed the stages before, and are counted as kept: a recrawl of the same texts has the
same retention, however few of them are new."""

SNAPSHOT_FACTS: Mapping[str, str] = {
    "records": "landed records",
    "new_pages": "records, without those that are no page or are unchanged",
    "texts": "texts that `extract` found",
    "copies": "texts that repeat another document, of this snapshot or an earlier one, or are left by `mix`",
    "documents": "documents of the landing that would be published, or that generated ones of theirs replace",
    "generated": "generated documents that would be published",
    "retention": "share of the new pages that are `documents` or copies",
    "text_retention": "share of the texts that are `documents` or copies",
    "record_retention": "share of the landed records that are `documents`",
    "compared_documents": "documents of the smaller of this and the previous snapshot",
    **{
        f"{name}_psi": f"population stability index of the `{name}` of what would be published against the previous "
        "snapshot, less what chance gives; none where a stage of just one of both was compared with others"
        for name in DISTRIBUTIONS
    },
}


VERDICT_FACTS: Mapping[str, str] = {
    "verdicts": "ablations in which the recipe was the second arm, beside what it requires, by models that count",
    "not_worse": "1 if that of most scored texts says that it is worse by less than the margin, beyond chance, else 0",
    "ablation": "the number of that one in the log of ablations",
}
"""Facts of the gate before the first stage of a recipe that requires a verdict."""


def refined_manifests(root: str, manifests: Mapping[str, str]) -> dict[str, Manifest]:
    """Return the manifests of a snapshot's stages, each after the one that it was made of, from their references.

    RecipeError where no stage has documents.
    """
    require_documents(manifests)
    return read_in_order(root, {stage: referred for stage, referred in manifests.items() if is_stage(stage)})


def require_documents(manifests: Mapping[str, str]) -> None:
    """Raise RecipeError where no stage of a snapshot has documents."""
    if not any(is_stage(stage) and not has_sequences(stage) for stage in manifests):
        named = ", ".join(manifests) or "none"
        message = f"name the manifest of a stage with documents, such as ingest; the snapshot has those of: {named}"
        raise RecipeError(message)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Rows of a snapshot as `SNAPSHOT_FACTS` has them; `texts` is None without `extract`.

    Offspring are no pages: however many there are of a page, it is one document.
    """

    records: int
    new_pages: int
    texts: int | None
    copies: int
    documents: int
    generated: int

    @property
    def left(self) -> int:
        return self.documents + self.copies


def _counts(manifests: Iterable[Manifest]) -> _Counts:
    ordered = [manifest for manifest in manifests if is_stage(manifest.stage)]
    records = ordered[0].rows_in
    generated = [generated_kept(manifest) for manifest in ordered if not has_sequences(manifest.stage)][-1]
    return _Counts(
        records=records,
        new_pages=records - sum(map(no_pages, ordered)),
        texts=next((manifest.rows for manifest in ordered if makes_documents(manifest.stage)), None),
        copies=_copies(ordered),
        documents=published_documents(ordered) - generated + min(sum(map(chosen, ordered)), generated),
        generated=generated,
    )


def compute_snapshot_facts(manifests: Sequence[Manifest], previous: Sequence[Manifest] | None = None) -> Facts:
    """Return the facts of a snapshot's manifests in the order of stages, compared with those of the previous one."""
    rows = _counts(manifests)
    compared = min(rows.documents, _counts(previous).documents) if previous else None
    return {
        "records": exact(rows.records),
        "new_pages": exact(rows.new_pages),
        "texts": exact(rows.texts),
        "copies": exact(rows.copies),
        "documents": exact(rows.documents),
        "generated": exact(rows.generated),
        "retention": share(rows.left, rows.new_pages),
        "text_retention": None if rows.texts is None else share(rows.left, rows.texts),
        "record_retention": share(rows.documents, rows.records),
        "compared_documents": exact(compared),
        **snapshot_drift(manifests, previous),
    }


def snapshot_amounts(manifests: Iterable[Manifest]) -> Amounts:
    """Return the amounts of a snapshot that bounds are learned of, from its manifests in the order of stages."""
    rows = _counts(manifests)
    counted = {"records": rows.records, "new_pages": rows.new_pages, "documents": rows.documents}
    return dict(
        [
            *(count_amount(name, count) for name, count in counted.items()),
            *share_amount("retention", rows.left, rows.new_pages),
            *share_amount("text_retention", rows.left, rows.texts or 0),
            *share_amount("record_retention", rows.documents, rows.records),
        ]
    )


def _copies(ordered: Iterable[Manifest]) -> int:
    return sum(_pages_rejected(each) for each in ordered if stage_card(each.stage).removes in NO_LOSS)


def _pages_rejected(manifest: Manifest) -> int:
    """Return the rejected rows but the generated ones."""
    generated = sum(rows for reason, rows in generated_removed(manifest).items() if reason in manifest.rejected)
    return sum(manifest.rejected.values()) - generated
