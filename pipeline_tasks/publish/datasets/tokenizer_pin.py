"""Pins one tokenizer to a dataset: chosen once, stored by its digest, named by an object that is put if absent.

`tokenizers/{recipe}/pin.json` names the tokenizer, and `tokenizers/{recipe}/{digest}.json` (or `.model`) is its
definition. Who creates the pin first wins; all others use the winner's. A pin that was removed is made anew from what
is published.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.binding import bind_fields
from pipeline_tasks.cards import stage_that, tokenizes
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.exports.tokenizer import tokenizer_row
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import seal, unseal
from pipeline_tasks.stages.tokenize.params import Params, Training
from pipeline_tasks.stages.tokenize.sentence_piece import suffix_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest

TRAINED, PUBLISHED, DEFAULT = "trained", "published", "default"
"""Sources of a pin that no recipe names: documents, published versions, and what comes with Refinery."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A dataset's tokenizer: the SHA-256 of its definition, what the recipe called it, and its special tokens.

    `source` is `trained`, `published`, `default`, or the recipe's `tokenizer` (of a file, `sha256:` and its digest). A
    trained one was trained on so many `documents` and `bytes`; where the default one was taken, so many `bytes` were
    too little. `snapshot` is of earlier releases, in which a snapshot had a tokenizer.
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
        how = f", trained on {self.bytes:,} bytes of text" if self.documents else ""
        if self.source == DEFAULT:
            how = f", which comes with Refinery: {self.bytes:,} bytes of text were too little to train one"
        return f"{self.source} (SHA-256 {self.digest[:16]}, {self.vocab_size:,} entries{how})"


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
        f"restore {pin_path(recipe)} from a backup, or remove it and run again: the tokenizer of the published "
        "versions is pinned anew. A recipe that names its tokenizer has to name that of a published version first"
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


def pin_of(row: Mapping[str, Any], recipe: str, source: str, params: Params) -> Pin:
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
        kind=row["kind"],
    )


def _digest(row: Mapping[str, Any]) -> str:
    return hashlib.sha256(row["definition"]).hexdigest()


def has_digest(path: str, digest: str) -> bool:
    """Return whether a file is there and has a SHA-256."""
    try:
        return storage.digest_of_file(path)[1] == digest
    except OSError:
        return False


# --- What is refused ------------------------------------------------------------------------------------------


def require_same(root: str, pin: Pin, params: Params, identity: str) -> None:
    """Raise RecipeError if a recipe asks for another tokenizer than the pinned one.

    `identity` is the recipe's `tokenizer`, or of a file `sha256:` and its digest.
    """
    if params.tokenizer:
        same, asked = identity in (pin.source, f"sha256:{pin.digest}"), f"for `tokenizer: {params.tokenizer}`"
    else:
        trained, wanted = pin.source in (TRAINED, PUBLISHED), (params.train or Training()).vocab_size
        same = pin.source == DEFAULT or (trained and wanted == pin.vocab_size)
        asked = f"to train one of {wanted:,} entries"
    if (params.eos, params.bos) != (pin.eos, pin.bos):
        same, asked = False, f"for eos {params.eos!r} and bos {params.bos!r} (pinned: {pin.eos!r} and {pin.bos!r})"
    if not same:
        message = (
            f"tokenize: the dataset {pin.recipe} in {root} has the tokenizer {pin}, and the recipe asks {asked}; a "
            "dataset has one tokenizer. Change the recipe back, or give it another `name`: that starts a new dataset "
            "of the same documents"
        )
        raise RecipeError(message)


# --- What is published ----------------------------------------------------------------------------------------


def adopt(root: str, recipe: str) -> Pin | None:
    """Pin the tokenizer of the dataset's newest version, if there is one."""
    for version in version_log.latest_by_snapshot(root, recipe):
        if stage := stage_that(tokenizes, version.manifests):
            manifest = read_manifest(root, version.manifests[stage])
            row = tokenizer_row(root, manifest)
            return put_pin(root, _published_pin(row, manifest, recipe), row["definition"])
    return None


def _published_pin(row: Mapping[str, Any], manifest: Manifest, recipe: str) -> Pin:
    eos, bos = (str(manifest.params.get(name, "")) for name in ("eos", "bos"))
    return pin_of(row, recipe, PUBLISHED, Params(tokenizer=f"sha256:{_digest(row)}", eos=eos, bos=bos))


def require_pinned(root: str, recipe: str, manifest: Manifest) -> Pin:
    """Return the dataset's pin; ContractError if a `tokenize` manifest was made with another tokenizer.

    A manifest of a dataset without a pin pins its own: the first who publishes wins.
    """
    row = tokenizer_row(root, manifest)
    pin = read_pin(root, recipe) or adopt(root, recipe)
    if pin is None:
        pin = put_pin(root, _published_pin(row, manifest, recipe), row["definition"])
    if pin.digest != _digest(row):
        message = (
            f"{root}: {manifest.stage}/{manifest.fingerprint} has the tokenizer {_digest(row)[:16]}, and the dataset "
            f"{recipe} has {pin}; build it again: it uses the dataset's"
        )
        raise ContractError(message)
    return pin
