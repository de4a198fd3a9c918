"""Finds all faults of how a recipe is written, with their lines: what is wrong is left out, the rest read again."""

from collections.abc import Iterator, Mapping

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.gate.checks import check_bounds
from pipeline_tasks.recipe import NO_STAGES, Recipe, load_recipe, parse_recipe, recipe_path
from pipeline_tasks.run.recipe_faults import Finding
from pipeline_tasks.yaml_file import key_lines, read_yaml

MOST = 50
"""Faults of one file that are said."""

REQUIRED = (" is required", NO_STAGES)
"""How a message ends that is of a key which was left out."""

KNOWN = "; known keys are"
"""Where a message begins to list what nobody wrote."""

Keys = tuple[object, ...]
"""Where a value is: the keys on the way to it."""


def written_faults(name: str) -> tuple[list[Finding], Recipe | None]:
    """Return what is wrong with how a recipe is written, and what is left without it: None if that is no recipe."""
    try:
        recipe = load_recipe(name)
        check_bounds(recipe)
    except RefineryError as error:
        return _all_faults(name, str(error))
    return [], recipe


def _all_faults(name: str, first: str) -> tuple[list[Finding], Recipe | None]:
    try:
        path = recipe_path(name)
        raw, lines = read_yaml(path), key_lines(path)
    except RefineryError:  # there is no file, or it is no YAML, which says its line itself
        return [Finding(fault=True, where=name, message=first)], None
    found, message = list[Finding](), first
    while message and len(found) < MOST:
        keys = _cause(raw, str(path), message)
        line = lines.get(tuple(map(str, keys)), 0)
        found.append(Finding(fault=True, where=name, message=message, line=line))
        raw = _without(raw, keys) if keys else raw
        message = _fault(raw, str(path))
        if not keys or _is_of_missing(message, keys):
            break
    found.sort(key=lambda finding: finding.line)
    return found, None if message else parse_recipe(raw, str(path))


def _fault(raw: object, where: str) -> str:
    """Return the first fault of a recipe, "" for none."""
    try:
        check_bounds(parse_recipe(raw, where))
    except RefineryError as error:
        return str(error)
    return ""


def _cause(raw: object, where: str, message: str) -> Keys:
    """Return the keys of a part without which a fault is gone; none if all have it.

    Of several it is the one whose keys the message has, and the smallest of these: without another stage, say, a gate
    would have another fault. So would a section that is left empty. A part that has to be there is the last choice.
    """
    needed: Keys = ()
    for _, keys in sorted(_parts(raw), key=lambda part: (-sum(str(key) in message for key in part[1]), part[0])):
        rest = _without(raw, keys)
        fault = _fault(rest, where)
        is_of_empty = len(keys) > 1 and not _at(rest, keys[:-1]) and str(keys[-2]) in fault.partition(KNOWN)[0]
        if fault == message or is_of_empty:
            continue
        if not _is_of_missing(fault, keys):
            return keys
        needed = needed or keys
    return needed


def _is_of_missing(fault: str, keys: Keys) -> bool:
    """Return whether a fault is that the part at some keys was left out."""
    return fault.endswith(REQUIRED) and bool(keys) and str(keys[-1]) in fault


def _at(raw: object, keys: Keys) -> object:
    """Return the value at the keys."""
    for key in keys:
        raw = raw[key] if isinstance(raw, Mapping) else None
    return raw


def _parts(raw: object, above: Keys = ()) -> Iterator[tuple[int, Keys]]:
    """Yield every value: how many keys it has, and those on the way to it."""
    for key, value in raw.items() if isinstance(raw, Mapping) else ():
        inside = list(_parts(value, (*above, key)))
        yield from inside
        yield len(inside), (*above, key)


def _without(raw: object, keys: Keys) -> object:
    """Return a mapping without the value at the keys."""
    if not isinstance(raw, Mapping):
        return raw
    first, *rest = keys
    if rest:
        return {**raw, first: _without(raw[first], tuple(rest))}
    return {key: value for key, value in raw.items() if key != first}
