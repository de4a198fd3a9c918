"""Writes the software bill of materials: CycloneDX 1.6 JSON of the pinned requirements, with their hashes.

`python -m pipeline_tasks.cli.commands.sbom [requirements.txt]` prints it. It has no clock and no random number: the
same requirements give the same bytes.
"""

import hashlib
import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline_tasks.shipped import checkout

_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^ ;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(requirements: str) -> Iterator[dict[str, Any]]:
    """Yield a component for each pinned package, with the SHA-256 of every file that pip may install for it."""
    for entry in re.split(r"\n(?=[A-Za-z0-9])", requirements):
        pinned = _PACKAGE.match(entry)
        if pinned is None:
            continue
        name, version = pinned.groups()
        purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
        files = [
            {"type": "distribution", "url": f"https://pypi.org/project/{name}/{version}/", "hashes": [_sha256(digest)]}
            for digest in _HASH.findall(entry)
        ]
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "purl": purl,
            "externalReferences": files,
        }


def _sha256(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def bill(requirements: str) -> dict[str, Any]:
    """Return the bill of materials of this release with these requirements."""
    project = tomllib.loads((checkout() / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    digest = hashlib.sha256(requirements.encode()).hexdigest()
    libraries = list(components(requirements))
    reference = f"pkg:pypi/{project['name']}@{project['version']}"
    application = {"type": "application", "bom-ref": reference, "name": project["name"], "version": project["version"]}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.UUID(digest[:32])}",
        "version": 1,
        "metadata": {"component": application},
        "components": libraries,
        "dependencies": [{"ref": reference, "dependsOn": [library["bom-ref"] for library in libraries]}],
    }


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else checkout() / "requirements.txt"
    sys.stdout.write(json.dumps(bill(path.read_text(encoding="utf-8")), indent=1) + "\n")
