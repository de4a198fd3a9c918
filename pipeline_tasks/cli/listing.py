"""Lists commands by their groups, as `refinery --help` and the first word of a command with two print them."""

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from pipeline_tasks.ask.known import GROUPS, Entry
from pipeline_tasks.nearest import near

INDENT = " " * 4


def listing(entries: Mapping[str, Entry]) -> str:
    """Return every first word by its group: a question with its help, or what may follow the word."""
    lines, width = [], max(map(len, top(entries)))
    for group in GROUPS:
        of_group = {name: entry for name, entry in entries.items() if entry.group == group}
        words = {name: entry.help for name, entry in of_group.items() if " " not in name}
        words |= {word: ", ".join(members(of_group, word)) for word in first_words(of_group)}
        lines += ["", f"{group}:", *_aligned(words, width)] if words else []
    return "\n".join(lines[1:])


def top(names: Iterable[str]) -> list[str]:
    """Return what a command line may begin with: names of one word, and the first of those that are two."""
    return list(dict.fromkeys([*(name for name in names if " " not in name), *first_words(names)]))


def first_words(names: Iterable[str]) -> list[str]:
    """Return the first words of names that are two."""
    return list(dict.fromkeys(name.partition(" ")[0] for name in names if " " in name))


def members(entries: Mapping[str, Entry], word: str) -> dict[str, Entry]:
    """Return the questions that begin with a word, by what follows it, in order of the alphabet."""
    return {name.removeprefix(f"{word} "): entries[name] for name in sorted(entries) if name.startswith(f"{word} ")}


def member_listing(entries: Mapping[str, Entry], word: str) -> str:
    """Return what may follow a word, each with its help."""
    helps = {name: entry.help for name, entry in members(entries, word).items()}
    lines = _aligned(helps, max(map(len, helps)))
    return "\n".join([f"usage: refinery {word} COMMAND ...", "", "commands:", *lines])


def nearest(entries: Mapping[str, Entry], wanted: str) -> str:
    """Return the question that is most like what was wanted, by its name, its last word or the name it had, else ""."""
    spellings = {entry.was: name for name, entry in entries.items() if entry.was}
    spellings |= {name.rpartition(" ")[2]: name for name in entries} | {name: name for name in entries}
    meant = near(wanted, spellings, least=0.6)
    return spellings[meant[0]] if meant else ""


def _aligned(lines: Mapping[str, str], width: int) -> Iterator[str]:
    """Yield words and their lines, in two columns that are as wide as the terminal."""
    for word, line in lines.items():
        first, later = f"{INDENT}{word:<{width}}  ", f"{INDENT}{'':<{width}}  "
        columns = max(shutil.get_terminal_size().columns - 2, len(later) + 20)
        yield textwrap.fill(line, columns, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)
