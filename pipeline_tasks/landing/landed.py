"""What the manifest of a landing says of its snapshot."""

from pipeline_tasks.manifest import Manifest


def text_field_of(landed: Manifest) -> str:
    """Return the name that the text has in the records of a landed snapshot, "" for one of ours."""
    return str(landed.params.get("fields", {}).get("text", ""))


def missing_of(landed: Manifest) -> tuple[str, ...]:
    """Return the promised files that a snapshot was refined without."""
    return tuple(landed.params.get("missing", ()))


def schema_version_of(landed: Manifest) -> int:
    """Return the version that whoever landed a snapshot says its schema to be of."""
    return int(landed.params.get("schema_version", 1))


def is_sample(landed: Manifest) -> bool:
    """Return whether a trial read a share of the snapshot."""
    return "sample" in landed.params
