"""Writes the card beside annotations: what each column means, and how they are joined."""

from collections.abc import Iterator, Mapping, Sequence

from pipeline_tasks.publish.logs.version_log import Version
from refinery_exports.annotations.columns import PREFIX, schema_of

MEANINGS: Mapping[str, str] = {
    "url_surtkey": "the address as the index sorts it; null of a record without one",
    "url": "the address of the record",
    "fetch_time": "when it was fetched (UTC), to the second",
    "warc_filename": "the file of the crawl that has the record",
    "warc_record_offset": "its first byte there",
    "warc_record_length": "its bytes there, compressed",
    f"{PREFIX}version": "number of the version that decided",
    f"{PREFIX}decision": "`kept`, `rejected` or `quarantined`",
    f"{PREFIX}stage": "which stage did not keep it; null of what is kept",
    f"{PREFIX}reasons": "every rule that it fails; null of what is kept",
    f"{PREFIX}kind": "WARC-Type of a record that became no page; null of a page",
    f"{PREFIX}id": "id of its document, a hash of its text; null of what became none",
    f"{PREFIX}duplicate_of": f"id of the document in its place (`{PREFIX}id` of that); null of what is no copy",
    f"{PREFIX}duplicate_of_snapshot": "snapshot of that document",
    f"{PREFIX}duplicate_of_warc_filename": "file of that document's record, where the stage names the record",
    f"{PREFIX}duplicate_of_warc_record_offset": "its first byte there",
    f"{PREFIX}language": "language of the text; null before it was told",
    f"{PREFIX}language_score": "how sure that is, 0 to 1",
    f"{PREFIX}quality_score": "quality of the text; null before it was scored",
}
"""What each column means; any other is a number that a stage wrote of the document."""

JOIN = """\
SELECT i.url, a.refinery_decision, a.refinery_reasons
FROM read_parquet('INDEX/crawl=*/subset=warc/*.parquet', hive_partitioning = true) AS i
LEFT JOIN read_parquet('crawl=*/subset=warc/*.parquet', hive_partitioning = true) AS a
USING (crawl, url_surtkey, warc_filename, warc_record_offset)
"""


def card(versions: Sequence[Version], scores: Sequence[str]) -> Mapping[str, bytes]:
    """Return `README.md` by its name."""
    return {"README.md": ("\n".join(_lines(versions, scores)) + "\n").encode()}


def _lines(versions: Sequence[Version], scores: Sequence[str]) -> Iterator[str]:
    numbers = ", ".join(f"{version.number} (`{version.snapshot}`)" for version in versions)
    yield from (
        f"Annotations of Common Crawl's columnar index by the recipe `{versions[0].recipe}` of Refinery, versions",
        f"{numbers}: a row for each record that landed.",
        "",
        "Files are partitioned as the index is, by `crawl` and `subset`, and each is sorted by `url_surtkey`; the rows",
        "of a crawl are in several files, which are not sorted together. Requests, metadata and other records that the",
        "index does not list are in `subset=unindexed`. Records of documents that were taken down are left out.",
        "`files.json` counts both, and lists every file with its SHA-256.",
        "",
        "## Join it",
        "",
        "In this folder, with the index of the crawl in `INDEX`:",
        "",
        "```sql",
        JOIN.strip(),
        "```",
        "",
        "## Columns",
        "",
        "| Column | Type | Meaning |",
        "|---|---|---|",
    )
    for field in schema_of(scores):
        meaning = MEANINGS.get(field.name, f"`{field.name.removeprefix(PREFIX)}` of the document")
        yield f"| `{field.name}` | {field.type} | {meaning} |"
