"""When a file that is cut has no text."""

from pipeline_tasks.text.page.file_text import DAMAGED, FileRefused, FileText


def something(text: FileText) -> FileText:
    """Return a text; FileRefused if the file is cut before any."""
    if text.is_cut and not any(text.parts) and not text.unread:
        raise FileRefused(DAMAGED)
    return text
