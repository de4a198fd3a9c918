"""The questions about sources, and the commands that pull from them."""

from pipeline_tasks.ask.known import Entry

QUESTIONS = {
    "pull": Entry(
        "refinery_sources.commands.pull", "pull a snapshot from a source into a landing: whole, or not at all", "refine"
    ),
    "look sources": Entry(
        "refinery_sources.commands.sources",
        "list sources: what has landed of each, what has not ended, who refuses",
        "look",
        was="sources",
    ),
    "look cut": Entry(
        "refinery_sources.commands.cut",
        "list the files that were cut, with sizes, for `refinery pull addresses` to fetch again",
        "look",
        shows=True,
        was="sources refetch",
    ),
    "setup fetch": Entry(
        "refinery_sources.commands.fetch",
        "fetch public evaluation sets or URL lists, pinned, for decontaminate or filter_url",
        "set up",
        was="fetch",
    ),
}
