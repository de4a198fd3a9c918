"""Describes a version in SPDX 3.0.1: a package of the Dataset profile, its files, and what it descends from.

Where the provider names a model, it is a package of the AI profile that was trained on the dataset. Where there is
nothing to say, the field is absent, and a licence is NOASSERTION: the format has a word for it. Sizes are in bytes.
https://spdx.github.io/spdx-spec/v3.0.1/
"""

from collections.abc import Iterator
from typing import Any

from pipeline_tasks.publish.published import PublishedFile
from pipeline_tasks.recipe import LAND
from pipeline_tasks.store.reading import clears_personal_data
from refinery_rights.disclose.counting import ModelAmount
from refinery_rights.disclose.croissant import identifier, source_identifier
from refinery_rights.disclose.facts import Facts
from refinery_rights.disclose.measures import actions_line
from refinery_rights.disclose.origins import SourceOrigin

CONTEXT = "https://spdx.org/rdf/3.0.1/spdx-context.jsonld"

NOT_ASSERTED = "https://spdx.org/rdf/3.0.1/terms/ExpandedLicensing/NoAssertion"

UNTIMED = "1970-01-01T00:00:00Z"
"""The time of an entry that an earlier release wrote without one."""

CREATION = "_:creation"

Element = dict[str, Any]


def spdx(facts: Facts) -> dict[str, Any]:
    """Return the description of a version as JSON-LD."""
    return {"@context": CONTEXT, "@graph": list(_graph(facts))}


def _graph(facts: Facts) -> Iterator[Element]:
    base, dataset = identifier(facts), f"{identifier(facts)}#dataset"
    at = created(facts)
    agent = f"{base}#provider" if facts.about.provider else f"{base}#refinery"
    tool = {"type": "SoftwareAgent", "spdxId": f"{base}#refinery", "creationInfo": CREATION, "name": "Refinery"}
    yield {"type": "CreationInfo", "@id": CREATION, "specVersion": "3.0.1", "created": at, "createdBy": [agent]}
    yield tool
    if facts.about.provider:
        yield {"type": "Organization", "spdxId": agent, "creationInfo": CREATION, "name": facts.about.provider}
    files = [_file(base, file) for file in facts.files]
    sources = [_source(base, origin) for origin in facts.origins]
    model = [_model(base, facts, agent)] if facts.about.model else []
    package = _dataset(dataset, facts, agent, at)
    yield package
    writers = [_writer(base, number, *each) for number, each in enumerate(sorted(models_of(facts).items()))]
    yield from (*files, *sources, *model, *writers)
    relations = [
        _relation(base, "contains", dataset, [file["spdxId"] for file in files]),
        _relation(base, "descendantOf", dataset, [source["spdxId"] for source in sources]),
        _licence(base, facts, dataset),
        *([_relation(base, "generates", writer["spdxId"], [dataset], number) for number, writer in enumerate(writers)]),
    ]
    if model:
        relations.append(_relation(base, "trainedOn", model[0]["spdxId"], [dataset]))
    relations = [each for each in relations if each["to"]]
    licence = _licence_expression(base, facts)
    yield from (*relations, *licence)
    everything = [tool, package, *files, *sources, *model, *writers, *relations, *licence]
    yield {
        "type": "SpdxDocument",
        "spdxId": f"{base}#document",
        "creationInfo": CREATION,
        "name": facts.name,
        "profileConformance": ["core", "software", "dataset", *(["ai"] if model or writers else []), "simpleLicensing"],
        "rootElement": [model[0]["spdxId"] if model else dataset],
        "element": [each["spdxId"] for each in everything],
    }


def created(facts: Facts) -> str:
    """Return when a version was published, to the second."""
    at = facts.version.at
    return f"{at[:19]}Z" if at else UNTIMED


def _dataset(name: str, facts: Facts, agent: str, at: str) -> Element:
    about, scrub = facts.about, facts.stage(clears_personal_data)
    lost = {stage.stage: sum(stage.rejected.values()) for stage in facts.stages if stage.rejected}
    noise = [f"{stage}: {rows:,} rows rejected" for stage, rows in lost.items()]
    collected = "; ".join(origin.line for origin in facts.origins)
    anonymized = [f"{manifest.stage}, {actions_line(manifest)}" for manifest in scrub.manifests] if scrub else []
    return {
        "type": "dataset_DatasetPackage",
        "spdxId": name,
        "creationInfo": CREATION,
        "name": about.title or facts.version.recipe,
        "description": about.description or facts.name,
        "software_packageVersion": str(facts.version.number),
        "software_primaryPurpose": "data",
        "builtTime": at,
        "releaseTime": at,
        "originatedBy": [agent],
        **({"software_downloadLocation": about.url} if about.url.startswith(("http://", "https://")) else {}),
        "dataset_datasetType": ["text"],
        "dataset_datasetSize": sum(file.bytes for file in facts.files),
        "dataset_dataCollectionProcess": collected,
        "dataset_dataPreprocessing": [f"{stage.stage}: {stage.title or 'see its params'}" for stage in facts.stages],
        **({"dataset_datasetNoise": "; ".join(noise)} if noise else {}),
        **({"dataset_anonymizationMethodUsed": list(dict.fromkeys(anonymized))} if anonymized else {}),
    }


def _file(base: str, file: PublishedFile) -> Element:
    return {
        "type": "software_File",
        "spdxId": f"{base}#file-{file.digest}-{file.path.replace('/', '-')}",
        "creationInfo": CREATION,
        "name": file.path,
        "software_primaryPurpose": "data",
        "verifiedUsing": [_hash(file.digest)],
    }


def _hash(digest: str) -> Element:
    return {"type": "Hash", "algorithm": "sha256", "hashValue": digest}


def _source(base: str, origin: SourceOrigin) -> Element:
    """Return a snapshot as a dataset of its own: where it is described, and the manifest of what landed."""
    version, digests = origin.version, origin.stated.digests
    address = source_identifier(origin)
    return {
        "type": "dataset_DatasetPackage",
        "spdxId": f"{base}#source-{version.recipe}-{version.number}",
        "creationInfo": CREATION,
        "name": f"{origin.name}, snapshot {version.snapshot}",
        "software_primaryPurpose": "data",
        "dataset_datasetType": ["text"],
        "dataset_datasetSize": origin.bytes,
        "description": f"{origin.files:,} landed files of {origin.bytes:,} bytes",
        **({"software_downloadLocation": address} if address.startswith("http") else {}),
        **({"verifiedUsing": [_hash(digests[LAND])]} if LAND in digests else {}),
    }


def _model(base: str, facts: Facts, agent: str) -> Element:
    about = facts.about
    return {
        "type": "ai_AIPackage",
        "spdxId": f"{base}#model",
        "creationInfo": CREATION,
        "name": about.model,
        "software_packageVersion": about.model_version or UNSAID,
        "software_primaryPurpose": "model",
        **({"suppliedBy": agent} if about.provider else {}),
    }


UNSAID = "NOASSERTION"
"""The version of a model where the provider gives none."""


def models_of(facts: Facts) -> dict[str, list[ModelAmount]]:
    """Return what each model wrote of the documents, by its name."""
    by_model: dict[str, list[ModelAmount]] = {}
    for each in facts.generated:
        by_model.setdefault(each.model, []).append(each)
    return by_model


def _writer(base: str, number: int, name: str, written: list[ModelAmount]) -> Element:
    """Return a model that wrote documents, with how much, and the license that its card names."""
    amounts = [each.amount for each in written]
    documents, tokens = (sum(getattr(each, what) for each in amounts) for what in ("documents", "tokens"))
    licenses = ", ".join(dict.fromkeys(each.license for each in written if each.license)) or UNSAID
    return {
        "type": "ai_AIPackage",
        "spdxId": f"{base}#writer-{number}",
        "creationInfo": CREATION,
        "name": name.partition("@")[0],
        "software_packageVersion": name.partition("@")[2] or UNSAID,
        "software_primaryPurpose": "model",
        "description": f"generated {documents:,} documents with {tokens:,} tokens of the dataset",
        "comment": f"license of the model: {licenses}",
    }


def _relation(base: str, kind: str, start: str, to: list[str], number: int = 0) -> Element:
    return {
        "type": "Relationship",
        "spdxId": f"{base}#{kind}{f'-{number}' if number else ''}",
        "creationInfo": CREATION,
        "from": start,
        "to": to,
        "relationshipType": kind,
    }


def _licence(base: str, facts: Facts, dataset: str) -> Element:
    to = f"{base}#licence" if facts.about.licence else NOT_ASSERTED
    return _relation(base, "hasDeclaredLicense", dataset, [to])


def _licence_expression(base: str, facts: Facts) -> list[Element]:
    if not facts.about.licence:
        return []
    return [
        {
            "type": "simplelicensing_LicenseExpression",
            "spdxId": f"{base}#licence",
            "creationInfo": CREATION,
            "simplelicensing_licenseExpression": facts.about.licence,
        }
    ]
