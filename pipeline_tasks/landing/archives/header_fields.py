"""Reads the fields of a header, as WARC and HTTP write them: a name, a colon, a value, and lines that go on with it."""

from collections.abc import Collection, Iterable, Mapping


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


RIGHTS = frozenset({"x-robots-tag", "content-usage", "tdm-reservation", "tdm-policy", "link"})
"""Fields of HTTP that may say how a page may be used."""

_LICENSE = "license"  # a `Link` that says nothing else is of no interest
MOST = 4096
"""Characters of such a field that are kept."""


def rights_fields(lines: Iterable[str], fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of `RIGHTS` that a header has, each with all of its lines, and newlines between these.

    `fields` are the header's by name, so that one without any costs next to nothing. Lines stay apart: an agent that
    an `X-Robots-Tag` names is that of its own line.
    """
    if RIGHTS.isdisjoint(fields):
        return {}
    values: dict[str, list[str]] = {}
    last: list[str] = []
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.strip().lower()
        if line[:1] in {" ", "\t"}:
            last[-1:] = [f"{part} {line.strip()}" for part in last[-1:] if len(part) < MOST]
        elif colon:
            last = values.setdefault(name, []) if name in RIGHTS else []
            if name in RIGHTS:
                last.append(value.strip())
    joined = {name: "\n".join(parts)[:MOST] for name, parts in values.items()}
    return {name: value for name, value in joined.items() if name != "link" or _LICENSE in value.lower()}
