"""Read word, host and URL lists: one item per line, plain or gzipped."""

import pyarrow as pa

from pipeline_tasks.errors import RecipeError


def read(path: str) -> frozenset[str]:
    """Return the items of the UTF-8 list at `path`, stripped; blank lines and `#` comments are none.

    An empty path is an empty list. The suffix (.gz, .zst, .bz2, ...) says how it is compressed. Raises RecipeError if
    the file is not UTF-8.
    """
    if not path:
        return frozenset()
    with pa.input_stream(path, compression="detect") as stream:
        content = stream.read()
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as broken:
        message = f"word list {path}: byte {broken.start} is not UTF-8; save the list as UTF-8"
        raise RecipeError(message) from broken
    items = (line.strip() for line in lines)
    return frozenset(item for item in items if item and not item.startswith("#"))
