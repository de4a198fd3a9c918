"""Opens files of Iceberg tables for PyIceberg: those that the query of the source names, whatever the metadata say.

Metadata are data: they name places, a class that reads them (`py-io-impl`), and endpoints of stores.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO


class FencedIO(PyArrowFileIO):
    """PyArrow's files, each asked for at `fence`, which raises RecipeError for a place that was not declared."""

    def __init__(self, properties: Mapping[str, Any], fence: Callable[[str], object]) -> None:
        super().__init__(dict(properties))
        self._fence = fence

    def new_input(self, location: str) -> PyArrowFile:
        """Return a file that was declared, by the scheme and path that are opened, without a URL's query."""
        scheme, _, path = self.parse_location(location, self.properties)
        self._fence(path if scheme == "file" else f"{scheme}://{path}")
        return super().new_input(location)
