"""Read a whole text file that a recipe names, plain or compressed, within a bound."""

import io

import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.base.cached import regular

BOM = b"\xef\xbb\xbf"

MOST_BYTES = 1 << 30
"""Bytes of an unpacked file; the longest public lists of hosts have a tenth of it."""

CHUNK = 1 << 20


def read_unpacked(path: str, what: str) -> bytes:
    """Return the unpacked file without a byte order mark; RecipeError, which calls it `what`, if it cannot be read.

    The suffix (.gz, .zst, .bz2) names the compression.
    """
    regular(path)
    unpacked = io.BytesIO()
    try:
        with pa.input_stream(path, compression="detect") as stream:
            while unpacked.tell() <= MOST_BYTES and (part := stream.read(CHUNK)):
                unpacked.write(part)
    except OSError as error:
        message = f"{what} {path} cannot be read ({error}); bring the file whole, or correct the path in the recipe"
        raise RecipeError(message) from error
    if unpacked.tell() > MOST_BYTES:
        message = f"{what} {path} has more than {MOST_BYTES:,} bytes unpacked; bring a shorter file, or split it"
        raise RecipeError(message)
    return unpacked.getvalue().removeprefix(BOM)
