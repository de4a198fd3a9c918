"""Plans one stage over one input: checks the request, and computes the fingerprint and where shards go."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import RecipeError, RefineryError, SchemaBroken
from pipeline_tasks.libraries import installed
from pipeline_tasks.manifest import (
    Manifest,
    fingerprint_in,
    fingerprint_of,
    folded,
    manifest_path,
    shared_prefix,
    stage_prefix,
)
from pipeline_tasks.profiles.distributions import profiled_by
from pipeline_tasks.run.history import Past
from pipeline_tasks.run.request import RefineRequest, Span
from pipeline_tasks.run.tasks.model_budget import Hours
from pipeline_tasks.run.tasks.sorted_runs import run_bytes
from pipeline_tasks.run.tasks.task import Files, StageIO, repoint
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.sealed import canonical, digest_of, split_reference
from pipeline_tasks.stage import VARIABLE, P, Secret, Shards, Stage
from pipeline_tasks.store import erasures, storage
from pipeline_tasks.store.files import digest_of_named
from pipeline_tasks.store.reading import read_once


@dataclass(frozen=True, slots=True)
class Plan:
    """A request with what follows from it: card, checked params, parent, history, fingerprint, and where shards go.

    Of a partition, `parents` and `parent_digests` have one entry for all of the history.
    """

    request: RefineRequest
    card: Stage[Any]
    params: Any
    parent: Manifest
    history: tuple[Past, ...]
    parents: tuple[str, ...]
    parent_digests: tuple[str, ...]
    resources: Mapping[str, str]
    libraries: Mapping[str, str]
    fingerprint: str
    io: StageIO

    @property
    def path(self) -> str:
        """Path of the manifest that commits the whole stage."""
        return manifest_path(self.card.name, self.fingerprint)

    @property
    def identity(self) -> dict[str, Any]:
        """The params as the fingerprint sees them."""
        return identity_of(self.params, self.resources)

    def inputs(self, span: Span | None) -> Shards:
        """Return the parent's shards of a span, or all of them."""
        return self.parent.shards if span is None else self.parent.shards[slice(*span)]


def plan(request: RefineRequest) -> Plan:
    """Check a request and compute the fingerprint; nothing is read but manifests and resource files."""
    card = stage_card(request.stage)
    params = with_secret(card, bind(card, request.params))
    erased = erasures.newest(request.root)
    parent, digest = read_once(request.root, request.parent)
    history = tuple(_past(request.root, referred) for referred in request.history) if card.reads_history else ()
    _check_reads(card, parent)
    if card.for_columns:
        params = card.for_columns(params, frozenset(name for name, _ in parent.schema))
    params, resources = resources_of(card, params)
    parents = (parent.fingerprint, *(past.fingerprint for past in history))
    parent_digests = (digest, *(past.digest for past in history))
    if request.span is not None:
        parents, parent_digests = folded(parents), folded(parent_digests, len(digest))
    digests = numbered(resources.values())
    libraries = installed(card.libraries_of(params))
    identity = identity_of(params, resources)
    fingerprint = fingerprint_of(card.name, card.version, identity, parents, digests, libraries)
    stage_io = _io(request, card, parent, resources, fingerprint)
    return Plan(
        request=request,
        card=card,
        params=params,
        parent=parent,
        history=history,
        parents=parents,
        parent_digests=parent_digests,
        resources=resources,
        libraries=libraries,
        fingerprint=fingerprint,
        io=replace(
            stage_io,
            implied=_implied(params, resources),
            erasures=erased,
            libraries=libraries,
            shared=shared_prefix(card.name, card.version, libraries),
        ),
    )


def _past(root: str, referred: str) -> Past:
    """Return an earlier manifest by its reference; it is read only if that has no digest."""
    path, digest = split_reference(referred)
    return Past(referred, fingerprint_in(path), digest or read_once(root, referred)[1])


def numbered(digests: Iterable[str]) -> dict[str, str]:
    """Return the digests of resources as manifests have them: in order, by number."""
    return {str(rank): digest for rank, digest in enumerate(sorted(digests))}


SHORTEST_SECRET = 16
"""Characters of a secret: a shorter one can be found by trying, from its check or from what it made."""


def secret_variable(request: RefineRequest) -> str:
    """Return the environment variable that must hold a secret for a request, or ""."""
    card = stage_card(request.stage)
    return secret_of(card, bind(card, request.params))[1] if card.secret else ""


def secret_of(card: Stage[P], params: P) -> tuple[str, str]:
    """Return the field that needs a secret, and its environment variable; two empty texts if none does."""
    name = card.secret(params) if card.secret else ""
    return name, next((declared.metadata[VARIABLE] for declared in fields(params) if declared.name == name), "")


def with_secret(card: Stage[P], params: P) -> P:
    """Return the params with the secret that they need, read from the environment; RecipeError if it is not there."""
    name, variable = secret_of(card, params)
    if not name:
        return params
    value = os.environ.get(variable, "")
    if len(value) < SHORTEST_SECRET:
        message = (
            f"{card.name} needs a secret of at least {SHORTEST_SECRET} characters; set the environment variable "
            f"{variable} or the password of the Airflow connection refinery_pii, the same for every snapshot "
            "(`openssl rand -hex 32` makes one)"
        )
        raise RecipeError(message)
    return replace(params, **{name: Secret.of(value)})


def _io(
    request: RefineRequest, card: Stage[Any], parent: Manifest, resources: Mapping[str, str], fingerprint: str
) -> StageIO:
    return StageIO(
        root=request.root,
        prefix=stage_prefix(card.name, fingerprint),
        profiled=profiled_by(card),
        spread=card.spread,
        batch_rows=request.batch_rows,
        run_bytes=run_bytes(request.resources.memory),
        snapshot=str(parent.params.get("snapshot", "")) if parent.landed else "",
        landing=request.landing,
        files=tuple(resources.items()),
        hours=Hours(card.name, request.model_hours, digest_of(split_reference(request.parent)[0], 32)),
    )


def _implied(params: object, resources: Mapping[str, str]) -> Files:
    """Return the files whose paths no param has."""
    written = canonical(params).decode()
    return tuple(file for file in resources.items() if canonical(file[0]).decode() not in written)


def _check_reads(card: Stage[Any], parent: Manifest) -> None:
    """Raise SchemaBroken where a parent lacks columns that a stage reads, or those of documents that it hands on.

    What reads landed bytes makes documents of them; nothing else does.
    """
    columns = dict(parent.schema)
    handed = () if "payload" in card.reads.names else [name for name in card.writes.names if name in DOCUMENT.names]
    needed = dict.fromkeys((*card.reads.names, *handed))
    missing = [name for name in needed if parent.schema and name not in columns]
    if missing:
        message = (
            f"{card.name} needs columns {missing} that {parent.stage}/{parent.fingerprint} does not have; "
            "put the stage that writes them before it in the recipe"
        )
        raise SchemaBroken(message)


def resources_of(card: Stage[P], params: P) -> tuple[P, dict[str, str]]:
    """Return the params with absolute paths, and {path: SHA-256} of every file that they name."""
    named = card.resources(params) if card.resources else ()
    params = repoint(params, {path: _absolute(path) for path in named})
    digests = {}
    for path in map(_absolute, named):
        try:
            digests[path] = digest_of_named(path)
        except OSError as error:  # missing, a folder, a pipe, without permission, or a name that is too long
            if isinstance(error, RefineryError):  # the store was busy: the path may be right
                raise
            message = f"{card.name}: cannot read {path} ({error.strerror or error}); correct the path in the recipe"
            raise RecipeError(message) from error
    return params, digests


def _absolute(path: str) -> str:
    return path if storage.is_absolute(path) else str(Path(path).absolute())


def identity_of(params: object, resources: Mapping[str, str]) -> dict[str, Any]:
    """Return the params with every resource path replaced by its digest: identity is the content, not the path."""
    return {name: _replace_paths(value, resources) for name, value in json.loads(canonical(params)).items()}


def _replace_paths(value: object, resources: Mapping[str, str]) -> object:
    if isinstance(value, dict):
        return {key: _replace_paths(item, resources) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_paths(item, resources) for item in value]
    return f"sha256:{resources[value]}" if isinstance(value, str) and value in resources else value
