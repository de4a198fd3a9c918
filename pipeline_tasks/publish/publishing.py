"""Publishes a snapshot: exports tokens, lineage and superseded documents, writes the report, appends the version."""

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest, digest_of, manifest_path
from pipeline_tasks.publish import packed, version_log
from pipeline_tasks.publish.ledger import Ledger
from pipeline_tasks.publish.report import write_report
from pipeline_tasks.recipe import STAGES
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_history, read_manifest, read_shards

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """What a version's tokens were made with; `definition` is a tokenizer.json (or tiktoken's ranks as JSON)."""

    kind: str
    name: str
    definition: bytes
    vocab_size: int
    eos_id: int

    @property
    def digest(self) -> str:
        """SHA-256 of the definition."""
        return hashlib.sha256(self.definition).hexdigest()


def publish(
    root: str,
    *,
    recipe: str,
    snapshot: str,
    landing: str,
    manifests: Mapping[str, str],
    verdicts: Mapping[str, str],
    ledger: Ledger,
) -> dict[str, Any]:
    """Make a dataset version of the manifests; publishing the same manifests again finds the version that is there."""
    paths = _with_land(root, manifests)
    made = {stage: read_manifest(root, path) for stage, path in paths.items()}
    prefix = f"publish/{digest_of({stage: one.fingerprint for stage, one in made.items()} | {'recipe': recipe})}"
    counts = _export(root, prefix, made) if "pack" in made else packed.Counts(0, 0, 0, 0)
    account = _store_superseded(root, prefix, made, snapshot)
    costs = ledger.query("cost", recipe=recipe, snapshot=snapshot)
    gone = [one for one in version_log.retractions(root, recipe).values() if one.snapshot < snapshot]
    report = write_report(root, recipe, snapshot, paths, verdicts, f"{prefix}/report.html", costs, gone=gone)
    documents = [made[stage].rows for stage in STAGES if stage in made and stage != "pack"][-1]
    version = version_log.append(
        root,
        {
            "recipe": recipe,
            "snapshot": snapshot,
            "landing": landing,
            "manifests": paths,
            "verdicts": dict(verdicts),
            "prefix": prefix,
            "documents": documents,
            "tokens": counts.tokens,
            "sequences": counts.sequences,
            **account,
        },
    )
    ledger.record_version(version)
    return {
        "version": version.number,
        "dataset": version_log.version_path(recipe, version.number),
        "prefix": prefix,
        "report": report,
        "documents": documents,
        "tokens": counts.tokens,
        "sequences": counts.sequences,
        "superseded": version.superseded,
    }


SUPERSEDED = pa.schema(
    [
        pa.field("id", pa.string()),  # the document that is no longer part of the dataset
        pa.field("snapshot", pa.string()),  # the snapshot that had published it
        pa.field("winner", pa.string()),  # the document that its cluster keeps now
        pa.field("winner_snapshot", pa.string()),
        pa.field("via", pa.string()),  # of the loser's cluster: compared with `near`, which joined it to the winner's
        pa.field("near", pa.string()),
        pa.field("similarity", pa.float64()),  # exact, as the parameter `similarity` of dedup_minhash says
        pa.field("bands", pa.int64()),  # bands that `via` and `near` share
    ]
)
"""One row of `superseded.parquet`, sorted by id: documents of earlier snapshots that a version takes out."""


def _store_superseded(root: str, prefix: str, made: Mapping[str, Manifest], snapshot: str) -> dict[str, Any]:
    """Store `superseded.parquet` under `prefix` if it has rows; return the fields of the version."""
    rows = _superseded_by(root, made["dedup_minhash"]) if "dedup_minhash" in made else SUPERSEDED.empty_table()
    if not rows.num_rows:
        return {"superseded": 0, "superseding": 0, "superseded_path": ""}
    path = f"{prefix}/superseded.parquet"
    with _stored(root, path) as out:
        pq.write_table(rows, out)
    ours = rows.filter(pc.equal(rows.column("winner_snapshot"), snapshot))
    return {"superseded": rows.num_rows, "superseding": len(ours.column("winner").unique()), "superseded_path": path}


def _superseded_by(root: str, dedup: Manifest) -> pa.Table:
    batches = []
    for batch in read_history(root, dedup, "superseded"):
        loser, winner = batch.column("node"), batch.column("winner")
        nodes = [
            pc.struct_field(node, name).cast(pa.string())
            for node, name in ((loser, "snapshot"), (winner, "id"), (winner, "snapshot"))
        ]
        proof = [batch.column(name) for name in ("via", "near", "similarity", "shared_bands")]
        batches.append(pa.RecordBatch.from_arrays([batch.column("id"), *nodes, *proof], schema=SUPERSEDED))
    return pa.Table.from_batches(batches, schema=SUPERSEDED).sort_by("id")


def read_superseded(root: str, recipe: str) -> pa.Table:
    """Return the documents that the current versions supersede, one row each (see `SUPERSEDED`)."""
    store = storage.connect(root)
    paths = [one.superseded_path for one in version_log.latest_by_snapshot(root, recipe) if one.superseded_path]
    tables = [pq.read_table(pa.BufferReader(store.read(path))) for path in paths]
    return pa.concat_tables([SUPERSEDED.empty_table(), *tables])


def _with_land(root: str, manifests: Mapping[str, str]) -> dict[str, str]:
    """Return the manifests with the landed snapshot's own, which is the parent of `ingest`."""
    paths = dict(manifests)
    if "land" not in paths and "ingest" in paths:
        paths["land"] = manifest_path("land", read_manifest(root, paths["ingest"]).parents[0])
    return paths


def _export(root: str, prefix: str, made: Mapping[str, Manifest]) -> packed.Counts:
    """Store `tokens.bin`, its two indexes, `lineage.parquet` and `tokenizer.json` under `prefix`; return the counts."""
    missing = [stage for stage in ("tokenize", "shuffle") if stage not in made]
    if missing:
        message = f"recipe packs tokens without {' and '.join(missing)}; add them to the recipe, or leave `pack` out"
        raise RecipeError(message)
    tokenizer = tokenizer_of(root, made["tokenize"])
    dtype = packed.dtype_for(tokenizer.vocab_size)
    with _stored(root, f"{prefix}/tokens.bin") as out:
        counts = packed.write_bin(read_shards(root, made["pack"].shards), out, dtype)
    with _stored(root, f"{prefix}/lineage.parquet") as out, pq.ParquetWriter(out, packed.LINEAGE) as writer:
        sequences = read_shards(root, made["pack"].shards)
        for batch in packed.lineage_batches(sequences, read_shards(root, made["shuffle"].shards)):
            writer.write_batch(batch)
    texts = {
        "tokens.json": packed.index_bytes(counts, dtype, tokenizer.digest),
        "tokens.idx": packed.megatron_index_bytes(counts, dtype),
        "tokenizer.json": tokenizer.definition,
    }
    for name, body in texts.items():
        with _stored(root, f"{prefix}/{name}") as out:
            out.write(body)
    return counts


@contextmanager
def _stored(root: str, path: str) -> Iterator[BinaryIO]:
    """Give a local file to write, and store it whole under `path` once it is written."""
    with tempfile.NamedTemporaryFile(prefix="refinery-") as local:
        yield cast("BinaryIO", local)
        local.flush()
        with Path(local.name).open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        storage.connect(root).put_file(path, Path(local.name), digest)


def tokenizer_of(root: str, tokenize: Manifest) -> Tokenizer:
    """Return the tokenizer that a `tokenize` manifest saved as history."""
    row = pa.Table.from_batches(list(read_history(root, tokenize, "tokenizer"))).to_pylist()[0]
    return Tokenizer(row["kind"], row["name"], row["definition"], row["vocab_size"], row["eos_id"])


def read_published(root: str, version: version_log.Version) -> tuple[packed.Packed, pa.Table]:
    """Open a version's tokens and lineage."""
    store = storage.connect(root)
    tokens = packed.read_packed(store.read(f"{version.prefix}/tokens.json"), store.read(f"{version.prefix}/tokens.bin"))
    return tokens, pq.read_table(pa.BufferReader(store.read(f"{version.prefix}/lineage.parquet")))


def decoder_of(root: str, version: version_log.Version) -> Any:  # noqa: ANN401 -- a function of token ids to text
    """Return a function that turns a version's token ids into text."""
    tokenizer = tokenizer_of(root, read_manifest(root, version.manifests["tokenize"]))
    if tokenizer.kind == "tiktoken":
        import tiktoken

        parts = json.loads(tokenizer.definition)
        ranks = {bytes.fromhex(piece): rank for piece, rank in parts["ranks"].items()}
        return tiktoken.Encoding(
            parts["name"], pat_str=parts["pat_str"], mergeable_ranks=ranks, special_tokens=parts["special_tokens"]
        ).decode
    import tokenizers

    loaded = tokenizers.Tokenizer.from_str(tokenizer.definition.decode())
    return lambda ids: loaded.decode(list(ids), skip_special_tokens=False)
