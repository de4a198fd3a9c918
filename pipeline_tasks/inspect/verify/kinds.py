"""The kinds of objects below a root: where each is, and what `refinery verify` notices of it, and by what.

Every object that Refinery stores has a row here, or in the `refinery.kinds` of an extension. The page formats.md of the
docs shows the table, and a test damages an object of each kind and compares.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from pipeline_tasks.alerts.sent import ALERTS
from pipeline_tasks.inspect.verify.objects import Expected
from pipeline_tasks.inspect.verify.sealed_objects import of_its_name, sealed, sealed_cache
from pipeline_tasks.publish.exported import EXPORTS, FILES, RECEIPTS
from pipeline_tasks.publish.logs.model_log import MODELS
from pipeline_tasks.recipe import PUBLISH
from pipeline_tasks.run.tasks.row_cache import CACHE
from pipeline_tasks.seams import all_parts
from pipeline_tasks.store.access_log import FOLDER as ACCESS
from pipeline_tasks.store.erasures import CERTIFICATES
from pipeline_tasks.store.shards.segment import COMPACTED

SEAM = "refinery.kinds"
"""The seam of the kinds that extensions store: each part is a tuple of `Kind`."""

NAMED = "a change, a removal, and a forgery with a new seal"
"""What is noticed of an object whose digest another one has."""

SEALED = "a change; it may be lost, and a new seal is believed"
"""What is noticed of an object whose seal, or whose name, is all that is known of it."""

FOLLOWS = "a change, also one with a new seal; it may be lost"
"""What is noticed of an object whose content, or whose name, follows from others."""

COPY = "nothing: it may be lost"
"""What is noticed of a copy, a message, or work in progress: `verify` does not read it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects: its noun, and where they are.

    In a place `<number>` has 12 digits, `<x>` is any name, `*` any end of one, and `**` any path.
    `notices` is what `verify` notices, and `by` what it is compared with, or who notices instead. `read` reads an
    object that no other check reads, and returns another that it names; it raises for one that is not as it was
    written, and `heal` is the way out then.
    """

    noun: str
    place: str
    notices: str
    by: str
    read: Callable[[str, str], Expected | None] | None = None
    heal: str = ""

    @property
    def pattern(self) -> str:
        """The regular expression of the paths of its objects."""
        any_of = {"**": ".+", "*": "[^/]*", "<number>": r"\d{12}"}
        parts = re.split(r"(<\w+>|\*\*|\*)", self.place)
        return "".join(any_of.get(part) or ("[^/]+" if part.startswith("<") else re.escape(part)) for part in parts)


_BACKUP = "restore it from a backup, or train the model again"

_AGAIN = "remove it: it is made again"

OWN = (
    *(
        row
        for log in ("datasets/<recipe>", "takedowns", "erasures", "ablations", f"{MODELS}/<name>/log")
        for row in (
            Kind("log entry", f"{log}/<number>.json", NAMED, "its head, the next entry, and the ledger"),
            Kind("log head", f"{log}/heads/<number>", NAMED, "the entry; the last may be missing after a crash"),
            Kind("log page", f"{log}/pages/<number>", FOLLOWS, "the entries, of which it is a copy"),
        )
    ),
    Kind("summary", "datasets/<recipe>/summaries/<digest>.json", FOLLOWS, "its seal, and what it sums up"),
    Kind("list of takedowns", "takedowns/lists/*", NAMED, "the landings and compositions that pin it"),
    Kind("segment of takedowns", "takedowns/segments/*", NAMED, "the log's entries, and lists that are pinned"),
    Kind(
        "certificate",
        f"{CERTIFICATES}/*.json",
        NAMED,
        "the log of erasures; its seal where an earlier release wrote it",
    ),
    Kind("evidence of an ablation", "ablations/*.json", NAMED, "the log of ablations"),
    Kind("look", f"{ACCESS}/<day>/*.json", FOLLOWS, "its seal and its name: they are no chain"),
    Kind("tokenizer pin", "tokenizers/<recipe>/pin.json", NAMED, "its seal, and the digest of the tokenizer"),
    Kind("tokenizer definition", "tokenizers/<recipe>/*", NAMED, "the pin"),
    Kind("model report", f"{MODELS}/<name>/<digest>/<kind>.<sha>.json", FOLLOWS, "its name", of_its_name, _BACKUP),
    Kind("model", f"{MODELS}/<name>/<digest>/**", COPY, "recipes that name it, by its digest"),
    Kind("what has been sent", f"{ALERTS}/*", COPY, "nobody: it is a message"),
    Kind("request", "requests/**", COPY, "nobody: it is a message, or a receipt, of work that is under way"),
    Kind("probe", "doctor/*", COPY, "nobody: it is looked at once"),
    Kind("ledger", "ledger.sqlite*", COPY, "SQLite: `refinery keep ledger` makes it anew"),
    Kind("cached rows", f"{CACHE}/<stage>/<name>/*.json", SEALED, "its seal", sealed_cache, _AGAIN),
    Kind(
        "cache segment", f"{CACHE}/<stage>/<name>/*", FOLLOWS, "the object that names it, also when rows are looked up"
    ),
    Kind("file list of an export", f"{PUBLISH}/<digest>/{EXPORTS}/<format>/{FILES}", SEALED, "its seal"),
    Kind(
        "receipt of an export", f"{PUBLISH}/<digest>/{EXPORTS}/<format>/{RECEIPTS}/**", COPY, "the export that reads it"
    ),
    Kind("exported file", f"{PUBLISH}/<digest>/{EXPORTS}/<format>/**", NAMED, "the list of the export"),
    Kind("file of a published shard", f"{PUBLISH}/shards/*", NAMED, "the index `dataset.json`"),
    Kind("published file", f"{PUBLISH}/<digest>/*", NAMED, "the log entry of the version"),
    Kind("compaction", f"{COMPACTED}/<digest>/manifest.json", SEALED, "its parts, whose history it has"),
    Kind("compacted segment", f"{COMPACTED}/<digest>/data/*", NAMED, "the compaction"),
    Kind("receipt of a compaction", f"{COMPACTED}/<digest>/receipts/*.json", SEALED, "its seal", sealed, _AGAIN),
    Kind(
        "what a run took of earlier snapshots",
        "<stage>/<fingerprint>/earlier/*.json",
        FOLLOWS,
        "its name",
        of_its_name,
        _AGAIN,
    ),
    Kind("manifest", "<stage>/<fingerprint>/manifest*.json", NAMED, "log entries, and manifests that were made of it"),
    Kind("verdict", "<stage>/<fingerprint>/gate/<digest>/verdict.json", NAMED, "the log entry"),
    Kind("Data Docs page", "<stage>/<fingerprint>/gate/<digest>/docs/*", NAMED, "the verdict"),
    Kind("partition", "<stage>/<fingerprint>/partitions/*.json", SEALED, "its seal, and the manifest"),
    Kind("receipt", "<stage>/<fingerprint>/receipts/*.json", SEALED, "its seal, and its name"),
    Kind("shard", "<stage>/<fingerprint>/data/*", NAMED, "the manifest; one that it does not name may be lost"),
    Kind("rejected rows", "<stage>/<fingerprint>/rejects/*", NAMED, "the manifest"),
    Kind("quarantined rows", "<stage>/<fingerprint>/quarantine/*", NAMED, "the manifest"),
    Kind("shuffled rows", "<stage>/<fingerprint>/scratch/**", COPY, "the receipts of the run that shuffles"),
)
"""The kinds that the core stores; of a path that several rows have, the first counts."""


@cache
def kinds() -> tuple[Kind, ...]:
    """Return all kinds, those of the extensions that are installed here first."""
    brought: Iterator[tuple[Kind, ...]] = (part.load() for part in all_parts(SEAM).values())
    return (*(kind for each in brought for kind in each), *OWN)


def kind_of(path: str) -> Kind | None:
    """Return the kind of an object by its path below a root, None if Refinery stores no such object."""
    found = _patterns().fullmatch(path)
    return kinds()[int(str(found.lastgroup)[1:])] if found else None


@cache
def _patterns() -> re.Pattern[str]:
    """Return all patterns as one, so that a path is looked at once; the group of each has its number."""
    return re.compile("|".join(f"(?P<k{at}>{kind.pattern})" for at, kind in enumerate(kinds())))


def kind_rows() -> list[tuple[str, ...]]:
    """Return the table as rows for a person: the kind, where it is, what is noticed, and by what."""
    return [(kind.noun, f"`{kind.place}`", kind.notices, kind.by) for kind in kinds()]
