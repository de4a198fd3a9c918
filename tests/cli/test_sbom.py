"""The bill of materials names every pinned package once, with all its hashes, in the form of CycloneDX 1.6."""

import json
import re
import subprocess
import sys

import jsonschema

from pipeline_tasks.cli.commands.sbom import bill
from tests.embedded import PROJECT

REQUIREMENTS = (PROJECT / "requirements.txt").read_text()

SCHEMA = {
    "type": "object",
    "required": ["bomFormat", "specVersion"],
    "properties": {
        "$schema": {"const": "http://cyclonedx.org/schema/bom-1.6.schema.json"},
        "bomFormat": {"const": "CycloneDX"},
        "specVersion": {"const": "1.6"},
        "serialNumber": {"pattern": "^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
        "version": {"type": "integer", "minimum": 1},
        "metadata": {"type": "object", "properties": {"component": {"$ref": "#/$defs/component"}}},
        "components": {"type": "array", "items": {"$ref": "#/$defs/component"}, "uniqueItems": True},
        "dependencies": {"type": "array", "items": {"type": "object", "required": ["ref"]}},
    },
    "additionalProperties": False,
    "$defs": {
        "component": {
            "type": "object",
            "required": ["type", "name"],
            "properties": {
                "type": {"enum": ["application", "library"]},
                "bom-ref": {"type": "string", "minLength": 1},
                "name": {"type": "string", "minLength": 1},
                "version": {"type": "string"},
                "purl": {"pattern": "^pkg:pypi/[a-z0-9-]+@[^@]+$"},
                "externalReferences": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["url", "type"],
                        "properties": {
                            "url": {"type": "string"},
                            "type": {"const": "distribution"},
                            "hashes": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "required": ["alg", "content"],
                                    "properties": {
                                        "alg": {"const": "SHA-256"},
                                        "content": {"pattern": "^([a-fA-F0-9]{32}|[a-fA-F0-9]{64})$"},
                                    },
                                },
                            },
                        },
                        "additionalProperties": False,
                    },
                },
            },
            "additionalProperties": False,
        }
    },
}
"""What CycloneDX 1.6 asks of the fields that are written, copied by hand from its specification."""


def test_the_bill_has_the_form_of_cyclonedx() -> None:
    jsonschema.validate(bill(REQUIREMENTS), SCHEMA)


def test_every_pinned_package_is_in_it_with_every_hash() -> None:
    libraries = bill(REQUIREMENTS)["components"]
    pinned = re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==(\S+)", REQUIREMENTS, re.MULTILINE)
    assert [(library["name"], library["version"]) for library in libraries] == pinned
    assert len({library["bom-ref"] for library in libraries}) == len(pinned) > 150
    hashes = [file["hashes"][0]["content"] for library in libraries for file in library["externalReferences"]]
    assert hashes == re.findall(r"--hash=sha256:([0-9a-f]{64})", REQUIREMENTS)


def test_the_same_requirements_give_the_same_bytes() -> None:
    command = [sys.executable, "-m", "pipeline_tasks.cli.commands.sbom"]
    first, second = (subprocess.run(command, capture_output=True, cwd=PROJECT, check=True).stdout for _ in range(2))
    assert first == second
    assert json.loads(first) == bill(REQUIREMENTS)
