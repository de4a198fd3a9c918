"""A type of files: a register, whose first line is its mark, then its title, then a page for each block of lines."""

from html import escape

from pipeline_tasks.file_types import FileType
from pipeline_tasks.text.page.file_text import DAMAGED, FileRefused, FileText

MARK = b"%REGISTER"


def read(body: bytes) -> FileText:
    """Return a page for each block of lines."""
    _, _, rest = body.decode(errors="replace").partition("\n")
    title, *pages = rest.split("\n\n")
    if not pages:
        raise FileRefused(DAMAGED)
    parts = tuple("".join(f"<p>{escape(line)}</p>" for line in page.splitlines()) for page in pages)
    return FileText(
        parts, is_paged=True, unread=tuple(nth for nth, part in enumerate(parts, 1) if not part), title=title
    )


TYPES = {"register": FileType("register", "Register", "stranger.register:read", "%REGISTER\n", endings=("register",))}
