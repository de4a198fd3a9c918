"""The reasons for which a reader gives no text, and the rule for files that are cut."""

from pipeline_tasks.text.page.file_text import REFUSED, FileRefused, FileText

ENCRYPTED, DAMAGED, TOO_LARGE = REFUSED


def something(text: FileText) -> FileText:
    """Return a text; FileRefused if the file is cut before any."""
    if text.is_cut and not any(text.parts) and not text.unread:
        raise FileRefused(DAMAGED)
    return text
