"""Pins one tokenizer to a dataset: chosen once, stored by its digest, named by an object that is put if absent.

`tokenizers/{recipe}/pin.json` names the tokenizer, and `tokenizers/{recipe}/{digest}.json` (or `.model`) is its
definition. Who creates the pin first wins; all others use the winner's. A pin that was removed is made anew from what
is published.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline_tasks.binding import bind_fields
from pipeline_tasks.errors import ContractError, GateRefused, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish import version_log
from pipeline_tasks.recipe import is_trial
from pipeline_tasks.sealed import seal, unseal
from pipeline_tasks.stages.tokenize.params import Params, Training
from pipeline_tasks.stages.tokenize.sentence_piece import suffix_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_history, read_manifest

TOKENIZE = "tokenize"

PUBLISHED = "published"
"""The source of a pin that was made from published versions."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A dataset's tokenizer: the SHA-256 of its definition, what the recipe called it, and its special tokens.

    `source` is `trained`, `published`, or the recipe's `tokenizer` (of a file, `sha256:` and its digest). `snapshot`
    is the one whose run pinned it; a trained one was trained on so many of its `documents` and `bytes`.
    """

    recipe: str
    digest: str
    source: str
    vocab_size: int
    eos: str = ""
    bos: str = ""
    documents: int = 0
    bytes: int = 0
    snapshot: str = ""
    kind: str = "tokenizers"

    @property
    def path(self) -> str:
        """Path of the definition below the root."""
        return f"tokenizers/{self.recipe}/{self.digest}{suffix_of(self.kind)}"

    def __str__(self) -> str:
        """Return the tokenizer in words."""
        trained = f", trained on {self.bytes:,} bytes of {self.snapshot}" if self.documents else ""
        return f"{self.source} (SHA-256 {self.digest[:16]}, {self.vocab_size:,} entries{trained})"


def pin_path(recipe: str) -> str:
    """Return the path of a dataset's pin."""
    return f"tokenizers/{recipe}/pin.json"


def read_pin(root: str, recipe: str) -> Pin | None:
    """Return a dataset's pin, None if it has none; ContractError if the pin or its tokenizer is damaged."""
    pin = read_pin_alone(root, recipe)
    if pin is not None:
        _require_definition(root, pin)
    return pin


def read_pin_alone(root: str, recipe: str) -> Pin | None:
    """As `read_pin`, whatever became of the tokenizer that it names."""
    store, path = storage.connect(root), pin_path(recipe)
    try:
        body = store.read(path)
    except FileNotFoundError:
        return None
    fields = unseal(body, f"{root}/{path}", _way_out(recipe))
    try:
        pin = bind_fields(Pin, fields, path)
    except RecipeError as error:
        message = f"{root}/{path} is no pin of a tokenizer ({error}); {_way_out(recipe)}"
        raise ContractError(message) from error
    if pin.recipe != recipe:
        message = f"{root}/{path} is the pin of {pin.recipe}; {_way_out(recipe)}"
        raise ContractError(message)
    return pin


def _way_out(recipe: str) -> str:
    return (
        f"restore {pin_path(recipe)} from a backup, or remove it and run again: "
        "the tokenizer of the published versions is pinned anew"
    )


def _require_definition(root: str, pin: Pin) -> None:
    try:
        actual = storage.digest_of_file(f"{root}/{pin.path}")[1]
    except FileNotFoundError:
        actual = "missing"
    if actual != pin.digest:
        message = (
            f"{root}/{pin.path} is {actual}, and the pin of {pin.recipe} says {pin.digest}; copy the tokenizer of "
            "a published version there, or remove the pin and this file and run again"
        )
        raise ContractError(message)


def put_pin(root: str, pin: Pin, definition: bytes) -> Pin:
    """Store a definition and pin it, if the dataset has no pin yet; return the pin that the dataset has."""
    store = storage.connect(root)
    storage.commit(store, pin.path, definition)
    store.create(pin_path(pin.recipe), seal(pin))
    return read_pin(root, pin.recipe) or pin


def pin_of(row: Mapping[str, Any], recipe: str, snapshot: str, source: str, params: Params) -> Pin:
    """Return the pin of a chosen tokenizer, a row of `TOKENIZER`."""
    return Pin(
        recipe=recipe,
        digest=_digest(row),
        source=source,
        vocab_size=row["vocab_size"],
        eos=params.eos,
        bos=params.bos,
        documents=row.get("documents", 0),
        bytes=row.get("bytes", 0),
        snapshot=snapshot,
        kind=row["kind"],
    )


def _digest(row: Mapping[str, Any]) -> str:
    return hashlib.sha256(row["definition"]).hexdigest()


def tokenizer_row(root: str, manifest: Manifest) -> dict[str, Any]:
    """Return the tokenizer that a `tokenize` manifest saved."""
    rows: list[dict[str, Any]] = pa.Table.from_batches(list(read_history(root, manifest, "tokenizer"))).to_pylist()
    return rows[0]


# --- What is refused ------------------------------------------------------------------------------------------


def require_enough(row: Mapping[str, Any], training: Training, recipe: str) -> None:
    """Raise GateRefused for a tokenizer that was trained on too little text, or did not reach its vocabulary.

    That of trials may have little text, as no snapshot of the dataset uses it.
    """
    data = "sample" if is_trial(recipe) else "snapshot"
    little = not is_trial(recipe) and row["bytes"] < training.floor
    short = row["vocab_size"] < training.vocab_size
    if not little and not short:
        return
    problem = (
        f"{row['documents']:,} documents with {row['bytes']:,} bytes of text are too little to train the tokenizer of "
        f"{recipe} on: `train: min_bytes` asks for {training.floor:,}"
        if little
        else f"training the tokenizer of {recipe} on {row['bytes']:,} bytes of text reached {row['vocab_size']:,} of "
        f"{training.vocab_size:,} entries"
    )
    lower = f"min_bytes: {row['bytes']}" if little else f"vocab_size: {row['vocab_size']}"
    message = (
        f"tokenize: {problem}. Every later {data} would use it. Name a tokenizer (`tokenize: {{tokenizer: ...}}`), "
        f"run a larger {data} first, or lower the floor in the recipe (`tokenize: {{train: {{{lower}}}}}`)"
    )
    raise GateRefused(message)


def require_same(root: str, pin: Pin, params: Params, identity: str) -> None:
    """Raise RecipeError if a recipe asks for another tokenizer than the pinned one.

    `identity` is the recipe's `tokenizer`, or of a file `sha256:` and its digest.
    """
    if params.tokenizer:
        same, asked = identity in (pin.source, f"sha256:{pin.digest}"), f"for `tokenizer: {params.tokenizer}`"
    else:
        trained, wanted = pin.source in ("trained", PUBLISHED), (params.train or Training()).vocab_size
        same, asked = trained and wanted == pin.vocab_size, f"to train one of {wanted:,} entries"
    if (params.eos, params.bos) != (pin.eos, pin.bos):
        same, asked = False, f"for eos {params.eos!r} and bos {params.bos!r} (pinned: {pin.eos!r} and {pin.bos!r})"
    if not same:
        message = (
            f"tokenize: the dataset {pin.recipe} in {root} has the tokenizer {pin}, and the recipe asks {asked}; a "
            "dataset has one tokenizer. Change the recipe back, or give it another `name`: that starts a new dataset, "
            "and the stages before tokenize are not run again"
        )
        raise RecipeError(message)


# --- What is published ----------------------------------------------------------------------------------------


def adopt(root: str, recipe: str) -> Pin | None:
    """Pin the tokenizer of the published versions, if there are any; ContractError if they have several."""
    rows: dict[str, tuple[dict[str, Any], Manifest]] = {}
    snapshots: dict[str, str] = {}
    for version in version_log.latest_by_snapshot(root, recipe):
        if TOKENIZE in version.manifests:
            manifest = read_manifest(root, version.manifests[TOKENIZE])
            row = tokenizer_row(root, manifest)
            rows.setdefault(_digest(row), (row, manifest))
            snapshots.setdefault(_digest(row), version.snapshot)
    if len(rows) > 1:
        listed = ", ".join(f"{digest[:16]} of {snapshot}" for digest, snapshot in sorted(snapshots.items())[:5])
        message = (
            f"{root}: the versions of {recipe} have {len(rows)} tokenizers ({listed}), of an earlier release; their "
            "tokens cannot be mixed. Give the recipe another `name`, and run every snapshot again"
        )
        raise ContractError(message)
    for digest, (row, manifest) in rows.items():
        return put_pin(root, _published_pin(row, manifest, recipe, snapshots[digest]), row["definition"])
    return None


def _published_pin(row: Mapping[str, Any], manifest: Manifest, recipe: str, snapshot: str) -> Pin:
    eos, bos = (str(manifest.params.get(name, "")) for name in ("eos", "bos"))
    return pin_of(row, recipe, snapshot, PUBLISHED, Params(tokenizer=f"sha256:{_digest(row)}", eos=eos, bos=bos))


def require_pinned(root: str, recipe: str, snapshot: str, manifest: Manifest) -> Pin:
    """Return the dataset's pin; ContractError if a `tokenize` manifest was made with another tokenizer.

    A manifest of a dataset without a pin pins its own: the first who publishes wins.
    """
    row = tokenizer_row(root, manifest)
    pin = read_pin(root, recipe) or adopt(root, recipe)
    if pin is None:
        pin = put_pin(root, _published_pin(row, manifest, recipe, snapshot), row["definition"])
    if pin.digest != _digest(row):
        message = (
            f"{root}: {manifest.stage}/{manifest.fingerprint} has the tokenizer {_digest(row)[:16]}, and the dataset "
            f"{recipe} has {pin}; run {snapshot} again: it uses the dataset's"
        )
        raise ContractError(message)
    return pin
