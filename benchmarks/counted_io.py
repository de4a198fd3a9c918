"""Counts the files of metadata that PyIceberg opens, writes and deletes, as the FileIO that `py-io-impl` names."""

from collections import Counter

from pyiceberg.io import InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

NAME = "counted_io.CountedIO"
"""What `py-io-impl` is, for programs of this folder."""

COUNTS: Counter[str] = Counter()
"""Files that were `opened`, `written` and `deleted`, and the bytes of those opened (`read`), of this process."""


class CountedFile(PyArrowFile):
    """A file that is counted when it is opened or written, and not when somebody asks whether it is there."""

    def open(self, seekable: bool = True) -> InputStream:  # noqa: FBT002 -- as PyIceberg's
        COUNTS["opened"] += 1
        COUNTS["read"] += len(self)
        return super().open(seekable)

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: FBT002 -- as PyIceberg's
        COUNTS["written"] += 1
        return super().create(overwrite)


class CountedIO(PyArrowFileIO):
    """PyIceberg's own FileIO, counted."""

    def new_input(self, location: str) -> PyArrowFile:
        return _counted(super().new_input(location))

    def new_output(self, location: str) -> PyArrowFile:
        return _counted(super().new_output(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        COUNTS["deleted"] += 1
        super().delete(location)


def _counted(file: PyArrowFile) -> CountedFile:
    return CountedFile(file.location, file._path, file._filesystem, file._buffer_size)  # noqa: SLF001 -- it has no copy
