"""A format of landed files: `.notes` has a document in each line, without quotes."""

from collections.abc import Iterator

from pipeline_tasks.landing.archives.record import Row
from pipeline_tasks.landing.brought_formats import Format
from pipeline_tasks.landing.decompression import Reader
from pipeline_tasks.landing.json_lines import LINE_CAP, Names, line_end, object_row, skip_line


def read_rows(reader: Reader, name: str, names: Names) -> Iterator[Row]:
    """Yield a row for each line."""
    while reader.fill(1):
        start, end = reader.offset, line_end(reader)
        if end is None:
            yield Row(start, skip_line(reader), error="oversize", error_detail=f"line over {LINE_CAP} bytes")
            continue
        line = reader.data[reader.at : end]
        reader.at = end
        text = line.decode(errors="replace").strip()
        yield object_row({"text": text}, start, len(line), name, "row", names=names)


FORMAT = Format(("notes",), read_rows)
