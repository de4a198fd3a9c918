"""Chooses which members of each band still have to be compared: stars first, then every pair that is left.

Two members of one class are known to be connected and are never compared. With a metric distance (Jaccard's is one:
Levandowsky and Winter 1971, Nature 234) two members whose distances from a third differ by more than `reach` cannot be
within `reach` of each other, and count as compared.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

STEPS_PER_PAIR = 100
TRIES = 64
SLACK = 1e-9
"""Distances are rounded; a pair is taken for proven apart only if it is so by more than this."""


@dataclass(frozen=True, slots=True)
class Bands:
    """Members of bands, row by row: band n is `rows starts[n]:starts[n + 1]`, the better member first.

    `classes` is, per row, the first row of the band that is known to be connected with it (itself, if none is);
    `old` rows are known of before and never compared with each other.
    """

    starts: Rows
    classes: Rows
    old: Flags


@dataclass(frozen=True, slots=True)
class Results:
    """Comparisons made so far, sorted by band: results of band n are `starts[n]:starts[n + 1]`, as rows of `Bands`."""

    starts: Rows
    members: Rows
    centers: Rows
    distances: npt.NDArray[np.float64]
    passed: Flags


def choose(bands: Bands, results: Results, *, pairs: int, reach: float, star: bool) -> tuple[Rows, Rows, Flags]:
    """Return rows to compare (member, center; the member is never old), and which new rows are not settled yet.

    A band whose uncompared pairs are at most `pairs` gets all of them, and is settled once they are compared. Another,
    and every one if `star`, gets a star: the best member of each old class, largest first, against the new members,
    and (not in a band's first star, if it has old members) the best new one against the other new ones. Stars leave
    out what is known and cost less than `pairs` comparisons, or one per new member and center where that is more.
    `reach` is the largest distance of a connected pair, infinite if the distance is no metric. A row is settled when
    each other member of its band is of its class or was compared with it; where finding that out takes too many steps,
    it is not.
    """
    limit = float("inf") if np.isinf(reach) else reach + SLACK
    return _choose(  # type: ignore[no-any-return]
        bands.starts,
        bands.classes.copy(),
        bands.old,
        results.starts,
        results.members,
        results.centers,
        results.distances,
        results.passed,
        pairs,
        limit,
        star,
    )


@compiled
def _root(parent, at):
    while parent[at] != at:
        parent[at] = parent[parent[at]]
        at = parent[at]
    return at


@compiled
def _join(parent, one, other):
    a, b = _root(parent, one), _root(parent, other)
    if a < b:
        parent[b] = a
    else:
        parent[a] = b


@compiled
def _compared(codes, code):
    at = np.searchsorted(codes, code)
    return at < codes.size and codes[at] == code


@compiled
def _known(codes, away, limit, size, one, other):
    """Tell whether a pair was compared, or is proven apart by its distances from the band's pivot (negative: none)."""
    if away[one] >= 0 and away[other] >= 0 and abs(away[one] - away[other]) > limit:
        return True
    return _compared(codes, min(one, other) * size + max(one, other))


@compiled
def _distances(members, centers, distances, begin, size):
    """Return each row's distance from the center that most were compared with; -1 where it is not known."""
    away = np.full(size, -1.0)
    times = np.zeros(size, np.int64)
    for at in range(centers.size):
        times[centers[at] - begin] += 1
    pivot = np.argmax(times)
    if times[pivot] == 0:
        return away
    away[pivot] = 0.0
    for at in range(centers.size):
        if centers[at] - begin == pivot:
            away[members[at] - begin] = distances[at]
    return away


@compiled
def _grouped(root, size):
    """Return rows sorted by class, and where each class begins by its root."""
    begins = np.zeros(size + 1, np.int64)
    for at in range(size):
        begins[root[at] + 1] += 1
    for at in range(size):
        begins[at + 1] += begins[at]
    slots = begins.copy()
    ordered = np.empty(size, np.int64)
    for at in range(size):
        ordered[slots[root[at]]] = at
        slots[root[at]] += 1
    return ordered, begins


@compiled
def _put(out, count, member, center):
    if count == out.shape[1]:
        more = np.empty((2, 2 * count), np.int64)
        more[:, :count] = out
        out = more
    out[0, count] = member
    out[1, count] = center
    return out


@compiled
def _all_left(out, count, begin, root, old, codes, away, limit, pairs, unsettled):
    """Append every uncompared pair of a band; returns the output, its length, and whether that was all of them."""
    size = root.size
    ordered, begins = _grouped(root, size)
    first, steps = count, 0
    most = max(STEPS_PER_PAIR * pairs, 64 * size)
    for one in range(size):
        if old[one]:
            continue
        low, high = begins[root[one]], begins[root[one] + 1]
        at = 0
        while at < size:
            if at == low:
                at = high
                continue
            other = ordered[at]
            at += 1
            steps += 1
            if steps > most:
                return out, first, False
            if (other > one and not old[other]) or _known(codes, away, limit, size, one, other):
                continue
            if count - first == pairs:
                return out, first, False
            out = _put(out, count, begin + one, begin + other)
            count += 1
            unsettled[begin + one] = True
            if not old[other]:
                unsettled[begin + other] = True
    return out, count, True


@compiled
def _arm(out, count, begin, root, old, codes, away, limit, center):
    """Append the comparisons of one center with the new members that are not of its class."""
    for one in range(root.size):
        if old[one] or one == center or root[one] == root[center]:
            continue
        if not _known(codes, away, limit, root.size, one, center):
            out = _put(out, count, begin + one, begin + center)
            count += 1
    return out, count


@compiled
def _star(out, count, begin, root, old, used, codes, away, limit, pairs):
    """Append a star: the best unused member of each old class, largest first, and the best unused new member."""
    size = root.size
    ordered, begins = _grouped(root, size)
    first = count
    sizes = begins[1:] - begins[:-1]
    for which in np.argsort(-sizes, kind="mergesort"):
        if sizes[which] == 0 or (count > first and count - first >= pairs):
            break
        for at in range(begins[which], begins[which + 1]):
            row = ordered[at]
            if old[row] and not used[row]:
                out, count = _arm(out, count, begin, root, old, codes, away, limit, row)
                break
    if count > first and not used.any():  # most new members join a remembered cluster; the rest get their star next
        return out, count
    uses = np.zeros(size, np.int64)
    for row in range(size):
        uses[root[row]] += used[row]
    before = count
    for _ in range(TRIES):
        center = -1
        for row in range(size):
            if old[row] or used[row]:
                continue
            if center < 0 or (uses[root[row]], -sizes[root[row]]) < (uses[root[center]], -sizes[root[center]]):
                center = row
        if center < 0:
            break
        out, count = _arm(out, count, begin, root, old, codes, away, limit, center)
        if count > before:
            break
        used[center] = True
        uses[root[center]] += 1
    return out, count


@compiled
def _choose(starts, parent, old, result_starts, members, centers, distances, passed, pairs, limit, star):
    out = np.empty((2, 1024), np.int64)
    count = 0
    unsettled = np.zeros(old.size, np.bool_)
    for band in range(starts.size - 1):
        begin, end = starts[band], starts[band + 1]
        low, high = result_starts[band], result_starts[band + 1]
        size = end - begin
        for at in range(low, high):
            if passed[at]:
                _join(parent, members[at], centers[at])
        root = np.empty(size, np.int64)
        whole, fresh = True, 0
        for at in range(size):
            root[at] = _root(parent, begin + at) - begin
            whole = whole and root[at] == root[0]
            fresh += not old[begin + at]
        if whole or fresh == 0:
            continue
        codes = np.empty(high - low, np.int64)
        used = np.zeros(size, np.bool_)
        for at in range(low, high):
            one, other = members[at] - begin, centers[at] - begin
            codes[at - low] = min(one, other) * size + max(one, other)
            used[other] = True
        codes.sort()
        away = np.full(size, -1.0)
        if not np.isinf(limit):
            away = _distances(members[low:high], centers[low:high], distances[low:high], begin, size)
        settles = False
        if not star:
            out, count, settles = _all_left(
                out, count, begin, root, old[begin:end], codes, away, limit, pairs, unsettled
            )
        if not settles:
            for at in range(size):
                unsettled[begin + at] = not old[begin + at]
            out, count = _star(out, count, begin, root, old[begin:end], used, codes, away, limit, pairs)
    return out[0, :count].copy(), out[1, :count].copy(), unsettled
