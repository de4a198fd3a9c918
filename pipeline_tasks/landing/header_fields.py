"""Reads the fields of a header, as WARC and HTTP write them: a name, a colon, a value, and lines that go on with it."""

from collections.abc import Collection, Iterable


def header_fields(lines: Iterable[str], *, lists: Collection[str] = (), first: bool = True) -> dict[str, str]:
    """Return the values by their names in lower case; a line that begins with a blank goes on with the one before.

    Of a name that is given twice the `first` value counts, or the last; in `lists` all do, with commas between.
    Takes time linear in the header, however often a value is folded.
    """
    values: dict[str, list[str]] = {}
    last: list[str] = []
    for line in lines:
        if values and line[:1] in {" ", "\t"}:
            last.append(line.strip())
            continue
        name, colon, value = line.partition(":")
        if not colon:
            continue
        name = name.strip().lower()
        last = [value.strip()]
        if name in values and name in lists:
            last = values[name]
            last += [",", value.strip()]
        elif name not in values or not first:
            values[name] = last
    return {name: " ".join(parts).strip() for name, parts in values.items()}
