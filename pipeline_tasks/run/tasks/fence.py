"""Keeps a task from committing what an erasure has taken out of its input meanwhile.

An erasure appends to its log before it looks at the root, and after it has rewritten objects. A task stores its shards,
and looks at the log behind its own write. So either the erasure finds the shards, or the task finds the erasure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pipeline_tasks.errors import JobLost
from pipeline_tasks.schema import KNOWN_BY
from pipeline_tasks.stage import Shard, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import LOG, Erasure, erasures
from pipeline_tasks.store.shards.rows import layers_of, read_shard
from pipeline_tasks.store.taken_down import taken_down
from pipeline_tasks.text.urls.takedown import evidence


def require_unerased(
    root: str, since: int, inputs: Sequence[Shards], stored: Iterable[Shard | None], cached: Sequence[str] = ()
) -> None:
    """Raise JobLost if an erasure after entry `since` of the log has changed what a task had read.

    `inputs` are its shards, none of rows that came by a shuffle: these may be of any. Landed files are no objects of
    the root: what is read of them is changed by any erasure. The stored shards that have a document which is taken down
    are removed; the next attempt reads what is left of its rows. What it has `cached`, by path, is removed in any case.
    """
    if storage.connect(root).size(LOG.entry_path(since + 1)) is None:
        return
    later = [entry for entry in erasures(root)[since:] if entry.takedown]
    if not later or (any(inputs) and not any(_is_changed(root, later, shard) for part in inputs for shard in part)):
        return
    with_documents = {shard.path for shard in stored if shard and shard.rows and _has_documents(root, shard)}
    storage.connect(root).delete_many([*cached, *sorted(with_documents)])
    message = (
        f"{root}/{LOG.entry_path(later[-1].number)}: documents that takedown {later[-1].takedown} names were erased "
        "while a task read them; what it stored is not committed, and it has to run again"
    )
    raise JobLost(message)


def _is_changed(root: str, later: Sequence[Erasure], shard: Shard) -> bool:
    gone = {each.before.path for entry in later for each in entry.objects}
    return any(part.is_landed or part.path in gone for part in layers_of(root, shard))


def _has_documents(root: str, shard: Shard) -> bool:
    taken = replace(taken_down(root), ever=True)
    return any(len(evidence(taken, batch).drop_null()) for batch in read_shard(root, shard, columns=KNOWN_BY))
