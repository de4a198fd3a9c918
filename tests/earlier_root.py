"""Roots as releases wrote them, which every later release must read: `python -m tests.earlier_root` adds this one's.

A root has two days of the small root, a training dataset that is built from them, a retracted day, compacted history,
and a day of pages that went through every stage of documents that needs no model. Its archive is written once, when a
release is made, and never again: what it proves is that bytes of that release can be read.
"""

import io
import json
import lzma
import sys
import tarfile
import tempfile
from pathlib import Path

from pipeline_tasks.libraries import release
from tests import small_build, small_root
from tests.archives import http, response, zipped
from tests.chain import How, refined

FOLDER = Path(__file__).parent / "earlier"

PAGES = "pages"
"""The recipe of the day of pages."""

DAY = "2026-11-22"

RECIPE = {
    "name": PAGES,
    "stages": {
        "ingest": {"rights": True},
        "check_rights": {},
        "extract": {"min_chars": 40},
        "filter_url": {},
        "filter_language": {"keep": ["en"], "threshold": 0.3},
        "filter_quality": {"profiles": ["gopher_repetition"]},
        "dedup_url": {"buckets": 1},
        "dedup_exact": {"buckets": 1},
        "cut_templates": {"buckets": 1},
        "dedup_minhash": {"buckets": 1},
        "dedup_paragraphs": {"buckets": 1},
        "score_quality": {},
        "scrub_pii": {},
        "enrich": {},
    },
}

TEXTS = (
    "The ferry left the harbor before the fog had lifted, and nobody on the pier remembered the name of its captain.",
    "Write to jane.doe@example.org or call +1 650 253 0000 about the ferry that leaves the harbor every morning.",
    "The old mill at the river was rebuilt by its owner over ten years, stone by stone, with help from the village.",
    "too short",
)


def write(folder: Path) -> None:
    """Write the root of this release to `folder`/root, and what landed to `folder`/landing."""
    small = small_root.build(folder)
    small_build.build(small, judged=True)
    day = small.landing / DAY
    day.mkdir()
    pages = [
        response(
            f"https://example.org/{at}", http(f"<html><body><article><p>{text}</p></article></body></html>".encode())
        )
        for at, text in enumerate(TEXTS)
    ]
    (day / "a.warc.gz").write_bytes(b"".join(zipped(pages)))
    recipe = folder / f"{PAGES}.yaml"
    recipe.write_text(json.dumps(RECIPE))
    refined(small.root, str(day), How(str(recipe)))


def archived(folder: Path) -> bytes:
    """Return a folder as an archive: the same files give the same bytes, whoever owns them and whenever they are."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size = path.stat().st_size
            with path.open("rb") as body:
                archive.addfile(entry, body)
    return lzma.compress(sink.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def unpack(archive: Path, folder: Path) -> str:
    """Unpack an archive into `folder`; return the root in it."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return str(folder / "root")


def main() -> int:
    """Write the archive of this release, unless it is there."""
    target = FOLDER / f"{release()}.tar.xz"
    if target.exists():
        sys.stderr.write(f"{target} is there: a root of a release that was made is not written again\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        FOLDER.mkdir(exist_ok=True)
        target.write_bytes(archived(Path(folder)))
    sys.stdout.write(f"{target}: {target.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
