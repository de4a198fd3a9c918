"""Builds a published training dataset again, byte for byte, from what its `build.json` says of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline_tasks.cards import has_param, tokenizes
from pipeline_tasks.cli.judging import judged
from pipeline_tasks.engines.each import On, Work
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.chosen import chosen_version
from pipeline_tasks.manifest import manifest_path
from pipeline_tasks.publish.datasets.building import restore_build
from pipeline_tasks.publish.datasets.composing import compose_again
from pipeline_tasks.publish.datasets.origin import (
    DIGEST,
    INDEX,
    Origin,
    Step,
    read_origin,
    read_origin_file,
    require_same_code,
    source_versions,
)
from pipeline_tasks.publish.datasets.tokenizer_pin import PUBLISHED, has_digest, pin_of, put_pin, read_pin
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Retraction, Version
from pipeline_tasks.publish.takedowns import PINNED, list_of, taken_down_of
from pipeline_tasks.recipe import BUILD, COMPOSE
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.sealed import path_of
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.gates import JudgeRequest
from pipeline_tasks.service.requests.publication import PublishRequest
from pipeline_tasks.service.work.publication import WORKERS, export_by
from pipeline_tasks.stages.tokenize.choosing import load_tokenizer
from pipeline_tasks.stages.tokenize.params import FILES, Params
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_committed, read_manifest
from pipeline_tasks.store.taken_down import FOLDER


@dataclass(frozen=True, slots=True)
class How:
    """Where stages run, and why gates that refuse may pass."""

    engine: str
    override: Mapping[str, str]


def build_again(root: str, dataset: str, name: str, how: How) -> dict[str, Any]:
    """Build the version again that a number, or the path of a `build.json`, names; return what there is now.

    A version of this root gets back what is damaged or gone of it, and no entry of the log is written. In another root
    that has refined the same snapshots, it is judged and published. ContractError if the bytes would be others.
    """
    is_file = name.endswith(".json")
    origin = read_origin_file(name) if is_file else read_origin(root, chosen_version(root, dataset, name))
    version = _published(root, origin) if is_file else chosen_version(root, dataset, name)
    if version is not None:
        _require_live(root, version)
    require_same_code(origin)
    beside = name.rpartition("/")[0] if is_file else f"{root}/{version.prefix}" if version else ""
    manifests = _refined(root, origin, how, _tokenizer(root, origin, beside))
    _require_allowed(root, origin, manifests)
    if version is None:
        version = _publish(root, origin, manifests, how)
    _require_references(root, version)
    files = restore_build(root, version, partial(export_by, Work("publish", root, "", On(workers=WORKERS))))
    index = version.file(INDEX)
    if index.digest != origin.index:
        message = f"{root}/{index.path} has SHA-256 {index.digest}, and the dataset that is built again {origin.index}"
        raise ContractError(message)
    facts = {"version": version.number, "index": index.path, "sha256": index.digest, "files": len(files)}
    return {"recipe": origin.name, **facts}


def _published(root: str, origin: Origin) -> Version | None:
    """Return the newest version of the root that has the dataset's manifests, None if none has."""
    paths = {step.stage: manifest_path(step.stage, step.fingerprint) for step in origin.steps}
    for version in reversed(version_log.versions(root, origin.name)):
        if {stage: path_of(referred) for stage, referred in version.manifests.items()} == paths:
            return version
    return None


def _require_live(root: str, version: Version) -> None:
    """Raise RecipeError for a version that was retracted, and not restored since."""
    log = version_log.log(root, version.recipe)
    for entry in log:
        if isinstance(entry, Retraction) and version.number in entry.retracts:
            later = [restored for restored in log if isinstance(restored, Version) and restored.number > entry.number]
            if all(restored.manifests != version.manifests for restored in later):
                message = (
                    f"{root}: version {version.number} of {version.recipe} was {entry.account}; it is not restored"
                )
                raise RecipeError(message)


def _tokenizer(root: str, origin: Origin, beside: str) -> str:
    """Return the path of the dataset's tokenizer, which is pinned if the root has no pin; "" if it has none.

    It is that of the root, or the copy that is published `beside` the dataset. ContractError if both are gone.
    """
    for step in origin.steps:
        if tokenizes(step.stage):
            digest = str(step.params["tokenizer"]).removeprefix(DIGEST)
            own = f"{root}/tokenizers/{origin.name}/{digest}"
            paths = [f"{where}{suffix}" for where in (own, f"{beside or '.'}/tokenizer") for suffix in FILES]
            path = next((path for path in paths if has_digest(path, digest)), "")
            if not path:
                message = (
                    f"{paths[0]}: the tokenizer of {origin.name} is not there; copy it from the root that built it"
                )
                raise ContractError(message)
            _pin(root, origin.name, Params(tokenizer=path, eos=step.params["eos"], bos=step.params["bos"]))
            return path
    return ""


def _pin(root: str, recipe: str, params: Params) -> None:
    """Pin the tokenizer that params name, as that of what was published, unless the dataset has a pin."""
    [batch] = load_tokenizer(iter(()), params=params)
    [row] = batch.to_pylist()
    if read_pin(root, recipe) is None:
        put_pin(root, pin_of(row, recipe, PUBLISHED, params), row["definition"])


def _refined(root: str, origin: Origin, how: How, tokenizer: str) -> dict[str, str]:
    """Compose, and run every stage as it ran; return the manifests by stage."""
    versions = source_versions(root, origin)
    [composed, *steps] = origin.steps
    parent = compose_again(root, origin.name, versions, composed.fingerprint, composed.resources).path
    manifests = {COMPOSE: parent}
    for step in steps:
        params = {name: value for name, value in step.params.items() if not str(value).startswith(DIGEST)}
        params |= {PINNED: _list(root, origin, step)} if has_param(step.stage, PINNED) else {}
        params |= {"tokenizer": tokenizer} if tokenizes(step.stage) else {}
        request = RefineRequest(root, step.stage, params, parent, engine=how.engine, recipe=origin.name, snapshot=BUILD)
        parent = manifests[step.stage] = handle(request)["manifest"]
        _require_same(root, origin, step, parent)
    return manifests


def _require_allowed(root: str, origin: Origin, manifests: Mapping[str, str]) -> None:
    """Raise RecipeError if the dataset has a document that is taken down now: it would come back."""
    proof = taken_down_of(root, {stage: read_manifest(root, referred) for stage, referred in manifests.items()})
    if proof:
        message = (
            f"{origin.name} of {root} is not built again: it has documents that were taken down since ({proof}). "
            "Its newest version is without them; `refinery takedown --undo` allows them again"
        )
        raise RecipeError(message)


def _list(root: str, origin: Origin, step: Step) -> str:
    """Return the list of what was taken down that a stage read, "" for none; ContractError if it is not there."""
    digest = str(step.params.get(PINNED, "")).removeprefix(DIGEST)
    path = list_of(root, {PINNED: digest} if digest else {})
    if digest and storage.connect(root).size(path.removeprefix(f"{root}/")) is None:
        message = f"{path}: no such list of takedowns; copy {FOLDER} from the root that published {origin.name}"
        raise ContractError(message)
    return path


def _require_same(root: str, origin: Origin, step: Step, referred: str) -> None:
    """Raise ContractError if a stage has another fingerprint than it had, with what of it differs."""
    manifest = read_manifest(root, referred)
    if manifest.fingerprint == step.fingerprint:
        return
    named = {name: (step.params.get(name), manifest.params.get(name)) for name in {*step.params, *manifest.params}}
    differing = [f"{name} was {was} and is {now}" for name, (was, now) in sorted(named.items()) if was != now]
    message = (
        f"{origin.name} cannot be built again byte for byte in {root}: {step.stage} becomes {manifest.fingerprint} and "
        f"was {step.fingerprint}: {'; '.join(differing) or 'its input differs'}. Build a new version with "
        "`refinery build`"
    )
    raise ContractError(message)


def _publish(root: str, origin: Origin, manifests: Mapping[str, str], how: How) -> Version:
    """Judge the stages and publish them as a version of this root; GateRefused as in any build."""
    name, verdicts = origin.name, {}
    for stage, referred in manifests.items():
        if stage != COMPOSE:
            override = how.override.get(stage, "")
            request = JudgeRequest(root, referred, override=override, recipe=name, snapshot=BUILD)
            verdicts[stage] = judged(request)
    handle(PublishRequest(root, name, BUILD, dict(manifests), verdicts))
    return version_log.current(root, name, BUILD)


def _require_references(root: str, version: Version) -> None:
    """Raise DigestMismatch if a manifest is not the one, byte for byte, that the version was published with."""
    for referred in version.manifests.values():
        read_committed(root, referred)
