"""Says what a training dataset was built from and how, in a file beside it, so that it can be built again exactly."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from pipeline_tasks.cards import is_stage, stage_card
from pipeline_tasks.errors import ContractError, RecipeError, cause
from pipeline_tasks.libraries import differences, present
from pipeline_tasks.manifest import WRITER, Manifest, in_order
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import read_published_file
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.sealed import seal, sha256, unseal
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest

ORIGIN = "build.json"

FORMAT = 1

INDEX = "dataset.json"

DIGEST = "sha256:"
"""What begins a param that named a file: the digest of the file, which the build fills in again."""


@dataclass(frozen=True, slots=True)
class Step:
    """A stage as it ran: version, params, resources and libraries, and the fingerprint that follows from these."""

    stage: str
    version: int
    params: Mapping[str, Any]
    resources: Mapping[str, str]
    fingerprint: str
    libraries: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """A snapshot that a dataset was composed of: the manifest of its documents, and the SHA-256 of that."""

    recipe: str
    snapshot: str
    manifest: str
    digest: str


@dataclass(frozen=True, slots=True)
class Origin:
    """What a training dataset was built from and how; `index` is the SHA-256 of its `dataset.json`.

    `steps` begin with the composition, and `writer` is the software that wrote their shards.
    """

    name: str
    index: str
    writer: str
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]


def origin_of(name: str, by_stage: Mapping[str, Manifest], index: bytes) -> Origin:
    """Return the origin of a dataset from its manifests and its `dataset.json`."""
    compose = by_stage[COMPOSE]
    versions = zip(compose.params["versions"], compose.parent_digests, strict=True)
    stages = [*in_order(by_stage)]
    return Origin(
        name=name,
        index=sha256(index),
        writer=by_stage[stages[-1]].writer,
        sources=tuple(
            Source(version["recipe"], version["snapshot"], version["manifest"], digest) for version, digest in versions
        ),
        steps=tuple(_step(by_stage[stage]) for stage in stages),
    )


def _step(manifest: Manifest) -> Step:
    params = {} if manifest.stage == COMPOSE else manifest.params  # `sources` has them
    return Step(manifest.stage, manifest.version, params, manifest.resources, manifest.fingerprint, manifest.libraries)


def origin_bytes(origin: Origin) -> bytes:
    """Return an origin as it is stored beside the dataset."""
    return seal({"format": FORMAT, **asdict(origin)})


def parse_origin(body: bytes, where: str) -> Origin:
    """Return the origin that stored bytes are; ContractError names `where` they are."""
    way_out = "copy it again from the root that published the dataset"
    raw = unseal(body, where, way_out)
    try:
        if raw.pop("format") != FORMAT or raw.keys() != {part.name for part in fields(Origin)}:
            message = f"it is not of format {FORMAT}"
            raise ValueError(message)  # noqa: TRY301 -- named below, as all that is wrong with it
        parts = {"sources": Source, "steps": Step}
        return Origin(**{**raw, **{key: tuple(kind(**part) for part in raw[key]) for key, kind in parts.items()}})
    except (ValueError, TypeError, KeyError) as error:
        message = f"{where} does not say what a dataset was built from ({cause(error)}); {way_out}"
        raise ContractError(message) from error


def read_origin(root: str, version: Version) -> Origin:
    """Return the origin of a published dataset: of its file, or where that is damaged, of its manifests."""
    try:
        return parse_origin(read_published_file(root, version.file(ORIGIN), version.way_out), f"{root}/{ORIGIN}")
    except ContractError as error:
        try:
            by_stage = {stage: read_manifest(root, referred) for stage, referred in version.manifests.items()}
        except (ContractError, RecipeError) as lost:
            message = f"{error}. Nor can it be made from the version's manifests: {lost}"
            raise ContractError(message) from error
        index = {part.path: part.digest for part in version.files}[f"{version.prefix}/{INDEX}"]
        return replace(origin_of(version.recipe, by_stage, b""), index=index)


def read_origin_file(uri: str) -> Origin:
    """Return the origin in a file; RecipeError if there is none."""
    folder, _, name = uri.rpartition("/")
    try:
        return parse_origin(storage.connect(folder or ".").read(name), uri)
    except (FileNotFoundError, IsADirectoryError) as error:
        message = f"{uri}: no such file; name the {ORIGIN} of a published dataset, or the number of a version"
        raise RecipeError(message) from error


def require_same_code(origin: Origin) -> None:
    """Raise ContractError if this release would write other bytes: it lists each stage and package that differs."""
    cards = [(step, stage_card(step.stage).version) for step in origin.steps if is_stage(step.stage)]
    differing = [f"{step.stage} {step.version} (here {now})" for step, now in cards if step.version != now]
    libraries = {name: known for step in origin.steps for name, known in step.libraries.items()}
    differing += differences(libraries, present(libraries))
    if origin.writer != WRITER:
        differing.append(f"{origin.writer} (here {WRITER})")
    unknown = [step.stage for step in origin.steps if step.stage != COMPOSE and not is_stage(step.stage)]
    differing += [f"{stage} (which is not here)" for stage in unknown]
    if differing:
        message = (
            f"{origin.name} cannot be built again byte for byte by this release: it was built by "
            f"{', '.join(differing)}. Install the release and packages that built it, or build a new version"
        )
        raise ContractError(message)


def source_versions(root: str, origin: Origin) -> list[Version]:
    """Return the published versions that a dataset was composed of; RecipeError lists those that are not in the root.

    A version that was superseded or retracted since is taken too: it is what the dataset was built from.
    """
    versions = [_version(root, source) for source in origin.sources]
    missing = [source for source, version in zip(origin.sources, versions, strict=True) if version is None]
    if missing:
        named = ", ".join(f"{source.snapshot} of recipe {source.recipe} ({source.manifest})" for source in missing)
        message = (
            f"{root} has not published what {origin.name} was built from: {named}. Refine these snapshots there, in "
            "order, from the same landed files by the same recipe and release"
        )
        raise RecipeError(message)
    return [version for version in versions if version is not None]


def _version(root: str, source: Source) -> Version | None:
    documents = f"{source.manifest}@{DIGEST}{source.digest}"
    for version in reversed(version_log.versions(root, source.recipe)):
        if version.snapshot == source.snapshot and version.refined == documents:
            return version
    return None
