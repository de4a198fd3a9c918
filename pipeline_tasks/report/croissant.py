"""Writes Croissant 1.1: nodes of files with size and SHA-256, of sets of files that are alike, and of their columns.

https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline_tasks.publish.published import PublishedFile

VERSION = "http://mlcommons.org/croissant/1.1"

CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context of the specification's appendix, with PROV-O."""

PARQUET = "application/x-parquet"

ENCODINGS: Mapping[str, str] = {
    ".parquet": PARQUET,
    ".json": "application/json",
    ".md": "text/markdown",
    ".html": "text/html",
}
"""Media types by the endings of names; of any other file `application/octet-stream`."""

NOT_ASSERTED = "NOASSERTION"
"""The licence where nobody has given one, as SPDX writes it."""

Node = dict[str, Any]


def dataset(name: str, about: Mapping[str, Any], distribution: Sequence[Node], record_sets: Sequence[Node]) -> Node:
    """Return a dataset: `about` are its own properties, `distribution` its files and sets of files."""
    head = {"@context": dict(CONTEXT), "@type": "sc:Dataset", "name": name, "conformsTo": VERSION}
    return {**head, **about, "distribution": [*distribution], "recordSet": [*record_sets]}


def file_object(file: PublishedFile) -> Node:
    """Return a file, whose path is relative to the description's place."""
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path.rpartition("/")[2],
        "contentUrl": file.path,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": _encoding(file.path),
        "sha256": file.digest,
    }


def _encoding(path: str) -> str:
    return next((kind for ending, kind in ENCODINGS.items() if path.endswith(ending)), "application/octet-stream")


def file_set(name: str, description: str, files: Sequence[PublishedFile]) -> Node:
    """Return a set of files that are alike."""
    size = sum(file.bytes for file in files)
    return {
        "@type": "cr:FileSet",
        "@id": name,
        "name": name,
        "description": f"{description} {len(files):,} files of {size:,} bytes.",
        "encodingFormat": _encoding(files[0].path),
        "includes": [file.path for file in files],
        "contentSize": f"{size} B",
    }


def record_set(files: Node, schema: pa.Schema) -> Node:
    """Return the records of a set of tables: a field per column that has a type of the format."""
    name = f"{files['@id']}-records"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": files["description"],
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column.name}",
                "name": column.name,
                "dataType": kind,
                "source": {"fileSet": {"@id": files["@id"]}, "extract": {"column": column.name}},
            }
            for column in schema
            if (kind := _data_type(column.type))
        ],
    }


def _data_type(kind: pa.DataType) -> str:
    """Return the type of a column in the format's words; "" of one that has none."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "sc:Text"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    if pa.types.is_floating(kind):
        return "sc:Float"
    return "sc:Boolean" if pa.types.is_boolean(kind) else ""
