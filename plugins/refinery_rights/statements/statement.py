"""States what a version delivers, and what it was made from and how: an in-toto Statement with SLSA provenance.

Subjects are the files that a reader of the version reads. Dependencies are what it was made from: landed files,
manifests, models and lists by digest, and the recipe. By-products are verdicts, with the reason of every override, and
the heads of the logs: a log that is written anew has other heads than a statement that somebody keeps.
https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md, https://slsa.dev/spec/v1.0/provenance
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.errors import ContractError
from pipeline_tasks.gate.verdicts import read_verdict
from pipeline_tasks.manifest import Manifest, in_order
from pipeline_tasks.publish.datasets.origin import DIGEST, read_origin, source_versions
from pipeline_tasks.publish.datasets.published_shards import named_files
from pipeline_tasks.publish.logs import ablation_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import PublishedFile
from pipeline_tasks.recipe import COMPOSE, LAND
from pipeline_tasks.report.summary import override_of
from pipeline_tasks.sealed import canonical, path_of, sha256, split_reference
from pipeline_tasks.stage import LANDING, WHOLE, Shard
from pipeline_tasks.store import erasures
from pipeline_tasks.store.log_chain import Log, dataset_log, read_chain
from pipeline_tasks.store.reading import read_committed, read_manifest
from pipeline_tasks.store.shards.rows import layers_of

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"

BUILD_TYPE = "urn:refinery:version:1"
"""How the fields of SLSA's provenance are filled; another way of filling them is another type."""

BUILDER = "urn:refinery"

Resource = dict[str, Any]
"""in-toto's ResourceDescriptor: a name with a digest, and annotations."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A version with its manifests by stage, each after the one that it was made of, and their digests."""

    version: Version
    manifests: Mapping[str, Manifest]
    digests: Mapping[str, str]

    @classmethod
    def read(cls, root: str, version: Version) -> "Stated":
        """Read the manifests of a version; ContractError if one is not what the log names."""
        read = {stage: read_committed(root, referred) for stage, referred in version.manifests.items()}
        ordered = in_order({stage: manifest for stage, (manifest, _) in read.items()})
        return cls(version, ordered, {stage: digest for stage, (_, digest) in read.items()})


def stated_versions(root: str, version: Version) -> list[Stated]:
    """Return a version, and behind it those of the snapshots that a training dataset was built from.

    ContractError where the root does not have them any more as they were.
    """
    sources: Sequence[Version] = ()
    if COMPOSE in version.manifests:
        sources = source_versions(root, read_origin(root, version))
    return [Stated.read(root, each) for each in (version, *sources)]


def statement_of(root: str, version: Version) -> dict[str, Any]:
    """Return the statement of a version, from its entry of the log, its manifests and its verdicts.

    It has no clock: the same version and logs give the same statement. ContractError if the log or a manifest is
    damaged.
    """
    stated = stated_versions(root, version)
    whole = stated[0]
    return {
        "_type": STATEMENT,
        "subject": [_file(file) for file in delivered(root, whole)],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "recipe": version.recipe,
                    "snapshot": version.snapshot,
                    "version": version.number,
                    "steps": steps_of(whole),
                },
                "resolvedDependencies": dependencies(stated),
            },
            "runDetails": {
                "builder": {"id": BUILDER, "version": {"writer": ", ".join(writers(stated))}},
                "metadata": {"invocationId": f"{version.recipe}/{version.number}", "finishedOn": version.at},
                "byproducts": [*verdicts(root, stated), *heads(root, [each.version for each in stated])],
            },
        },
    }


def statement_bytes(statement: Mapping[str, Any]) -> bytes:
    """Return a statement as it is signed: canonical JSON."""
    return canonical(statement)


def delivered(root: str, stated: Stated) -> list[PublishedFile]:
    """Return the files that a version delivers: those that it published, and of a snapshot the shards of documents.

    The rows of a layer come from the shards below it, which are delivered with it.
    """
    version = stated.version
    files = {file.path: file for file in named_files(root, version)}
    if COMPOSE not in version.manifests:
        refined = read_manifest(root, version.refined)
        shards = [part for shard in refined.shards for part in layers_of(root, shard) if not part.is_landed]
        files |= {shard.path: PublishedFile(shard.path, shard.bytes, shard.digest) for shard in shards}
    return [files[path] for path in sorted(files)]


def steps_of(stated: Stated) -> list[dict[str, Any]]:
    """Return the stages that a version was made by, in order, with the version of their code and their params.

    Those of a landing and of a composition are no choices of a recipe: what they name is among the dependencies.
    """
    return [
        {"stage": stage, "version": manifest.version, "params": dict(manifest.params)}
        for stage, manifest in stated.manifests.items()
        if stage not in (LAND, COMPOSE)
    ]


def models_of(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the name and the SHA-256 of each file that a stage's params named: models, lists, tokenizers."""
    yield from _named(manifest.stage, manifest.params)


def _named(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and value.startswith(DIGEST):
        yield name, value.removeprefix(DIGEST)
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield from _named(f"{name}.{key}", value[key])
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            yield from _named(f"{name}.{at}", item)


def heads(root: str, versions: Sequence[Version]) -> list[Resource]:
    """Return the last entry of the log of each recipe, of takedowns, erasures and ablations, and the versions'.

    An entry that a statement names is part of its log for good: a log only grows.
    """
    named: dict[str, Resource] = {}
    for version in versions:
        log = dataset_log(version.recipe)
        entry = read_chain(root, log)[version.number - 1]
        named[log.entry_path(entry.number)] = _entry(log, entry.number, entry.digest)
    recipes = sorted({version.recipe for version in versions})
    for log in (*map(dataset_log, recipes), erasures.TAKEDOWNS, erasures.LOG, ablation_log.LOG):
        for last in read_chain(root, log)[-1:]:
            named.setdefault(log.entry_path(last.number), _entry(log, last.number, last.digest))
    return list(named.values())


def _entry(log: Log, number: int, digest: str) -> Resource:
    facts = {"log": log.folder, "number": number}
    return _resource(log.entry_path(number), digest, facts)


def _file(file: PublishedFile) -> Resource:
    return _resource(file.path, file.digest, {"bytes": file.bytes})


def _resource(name: str, digest: str, annotations: Mapping[str, Any]) -> Resource:
    return {"name": name, "digest": {"sha256": digest}, "annotations": annotations}


def dependencies(stated: Sequence[Stated]) -> list[Resource]:
    """Return what versions were made from, each once: recipes, landed files, manifests, and files that params name."""
    return list(_unique(_dependencies(stated)))


def _dependencies(stated: Sequence[Stated]) -> Iterator[Resource]:
    for each in stated:
        named = steps_of(each)
        yield _resource(f"recipe/{each.version.recipe}", sha256(canonical(named)), {"stages": len(named)})
        for manifest in each.manifests.values():
            yield from (_landed(each.version, shard) for shard in manifest.shards if shard.is_landed)
        for stage, manifest in each.manifests.items():
            path = path_of(each.version.manifests[stage])
            yield _resource(path, each.digests[stage], {"manifest": stage})
            for name, digest in models_of(manifest):
                yield _resource(f"file/{name}", digest, {"param": name})


def _landed(version: Version, shard: Shard) -> Resource:
    """Return a landed file, or a piece of one, by its snapshot and name: where it landed is nobody else's business."""
    piece = {"start": shard.start} if shard.start != WHOLE else {}
    name = f"{LANDING}{version.snapshot}/{shard.path.removeprefix(LANDING)}"
    return _resource(name, shard.digest, {"bytes": shard.bytes, **piece})


def verdicts(root: str, stated: Sequence[Stated]) -> list[Resource]:
    """Return the verdicts of versions, each once, with the outcome and the reason of an override."""
    return list(_unique(_verdicts(root, stated)))


def _verdicts(root: str, stated: Iterable[Stated]) -> Iterator[Resource]:
    for each in stated:
        for gate, referred in each.version.verdicts.items():
            if referred:
                path, digest = split_reference(referred)
                verdict = read_verdict(root, referred)
                said = {"gate": gate, "outcome": verdict.outcome}
                override = override_of(verdict)
                yield _resource(path, digest, {**said, **({"override": override} if override else {})})


def writers(stated: Iterable[Stated]) -> list[str]:
    """Return the versions of the code that wrote the shards of versions, each once."""
    return sorted({manifest.writer for each in stated for manifest in each.manifests.values()})


def _unique(resources: Iterable[Resource]) -> Iterator[Resource]:
    """Yield each resource once: snapshots share models, and pieces of a file its name."""
    seen = set[bytes]()
    for resource in resources:
        key = canonical(resource)
        if key not in seen:
            seen.add(key)
            yield resource


# --- Statements that are read ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Signed:
    """A statement of a version, as it was signed: its recipe, snapshot and number, and what it says."""

    recipe: str
    snapshot: str
    number: int
    subjects: tuple[Resource, ...]
    dependencies: tuple[Resource, ...]
    byproducts: tuple[Resource, ...]

    @property
    def title(self) -> str:
        """The version in words."""
        return f"version {self.number} of {self.recipe}"

    @property
    def entries(self) -> list[Resource]:
        """The entries of logs that the statement names."""
        return [each for each in self.byproducts if "log" in each.get("annotations", {})]


def read_statement(statement: object, where: str) -> Signed:
    """Return what a statement says; ContractError names `where` it is, if it is none of a version of ours."""
    try:
        if statement["_type"] != STATEMENT or statement["predicateType"] != PREDICATE:  # type: ignore[index]
            message = "it is no in-toto statement with SLSA provenance"
            raise ValueError(message)  # noqa: TRY301 -- named below, as all that is wrong with it
        predicate = statement["predicate"]  # type: ignore[index]
        definition, details = predicate["buildDefinition"], predicate["runDetails"]
        if definition["buildType"] != BUILD_TYPE:
            message = f"its build type is {definition['buildType']!r}"
            raise ValueError(message)  # noqa: TRY301
        parameters = definition["externalParameters"]
        named = str(parameters["recipe"]), str(parameters["snapshot"]), int(parameters["version"])
        parts = (statement["subject"], definition["resolvedDependencies"], details["byproducts"])  # type: ignore[index]
        subjects, dependencies, byproducts = (tuple(map(_read, part)) for part in parts)
        _require_anchor(named[0], named[2], subjects, byproducts)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        message = f"{where} is signed, and is no statement of a version of this release ({error})"
        raise ContractError(message) from error
    return Signed(*named, subjects, dependencies, byproducts)


def _require_anchor(recipe: str, number: int, subjects: Sequence[Resource], byproducts: Sequence[Resource]) -> None:
    """Raise ValueError unless a statement has files and names the entry of its version: any root agrees with less."""
    if not subjects:
        message = "it has no subject"
        raise ValueError(message)
    own = dataset_log(recipe).entry_path(number)
    if not any(each["name"] == own and "log" in each["annotations"] for each in byproducts):
        message = f"it does not name {own}, the entry of its version"
        raise ValueError(message)


def _read(raw: Mapping[str, Any]) -> Resource:
    """Return a resource that has a name, a SHA-256 and what is read of it; ValueError, TypeError or KeyError if not."""
    name, digest, said = str(raw["name"]), str(raw["digest"]["sha256"]), dict(raw.get("annotations") or {})
    whole = ("number",) if "log" in said else ("bytes",) if name.startswith(LANDING) else ()
    numbers = {key: int(said[key]) for key in (*whole, *({"bytes", "start"} & said.keys()))}
    return _resource(name, digest, {**said, **numbers})
