"""Choose which members of each band still have to be compared: stars first, then every pair that is left.

Two members of one class are known to be connected and are never compared. With a metric distance (Jaccard's is one:
Levandowsky and Winter 1971, Nature 234) two members whose distances from a third differ by more than `reach` cannot be
within `reach` of each other, and count as compared.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled, inlined

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

STEPS_PER_PAIR = 100
STEPS_PER_MEMBER = 64
"""Steps of a search for pairs, per wanted pair or per member; a band that needs more gets a star in this round."""

TRIES = 64
"""A star ends after this many centers in a row that have nothing left to compare."""

SLACK = 1e-9
"""Distances are rounded; a pair is taken for proven apart only if it is so by more than this."""


@dataclass(frozen=True, slots=True)
class Bands:
    """Members of bands, row by row: band n is `rows starts[n]:starts[n + 1]`, the better member first.

    `classes` is, per row, the first row of the band that is known to be connected with it (itself, if none is);
    `known` rows come from history and are never compared with each other.
    """

    starts: Rows
    classes: Rows
    known: Flags


@dataclass(frozen=True, slots=True)
class Results:
    """Comparisons made so far, sorted by band: results of band n are `starts[n]:starts[n + 1]`, as rows of `Bands`."""

    starts: Rows
    members: Rows
    centers: Rows
    distances: npt.NDArray[np.float64]
    passed: Flags


def choose(bands: Bands, results: Results, *, pairs: int, reach: float, star: bool) -> tuple[Rows, Rows, Flags]:
    """Return rows to compare (member, center; the member is always new), and which new rows are not settled yet.

    A band whose uncompared pairs are at most `pairs` gets all of them, and is settled once they are compared. Another,
    and every one if `star`, gets a star: the best member of each known class, largest first, against the new members,
    and (not in a band's first star, if it has known members) the best new one against the other new ones. Stars leave
    out what is known and cost less than `pairs` comparisons, or one per new member and center where that is more.
    `reach` is the largest distance of a connected pair, infinite if the distance is no metric. A row is settled when
    each other member of its band is of its class or was compared with it; where finding that out takes too many steps,
    it is not.
    """
    limit = float("inf") if np.isinf(reach) else reach + SLACK
    members, centers, unsettled = _choose(
        bands.starts,
        bands.classes.copy(),
        bands.known,
        results.starts,
        results.members,
        results.centers,
        results.distances,
        results.passed,
        pairs,
        limit,
        star,
    )
    return members, centers, unsettled


class _Band(NamedTuple):
    """One band inside the loops: rows count from its first row, `begin`."""

    begin: int
    root: Rows  # per row: the first row of its class
    known: Flags
    used: Flags  # rows that were a center
    codes: Rows  # the pairs that were compared, sorted (see `_pair_code`)
    away: npt.NDArray[np.float64]  # per row: distance from the pivot; negative where it is not known
    limit: float  # distance above which two rows are apart


@compiled
def _root(parents, row):
    """Return the first row of a row's class, and shorten the way to it."""
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@compiled
def _join(parents, left, right):
    """Make one class of the classes of two rows."""
    left_root, right_root = _root(parents, left), _root(parents, right)
    if left_root < right_root:
        parents[right_root] = left_root
    else:
        parents[left_root] = right_root


@inlined
def _pair_code(left, right, size):
    """Return one number for an unordered pair of rows of a band with `size` members."""
    return min(left, right) * size + max(left, right)


@inlined
def _is_done(band, left, right):
    """Return whether a pair was compared, or is proven apart by its distances from the band's pivot."""
    away = band.away
    if away[left] >= 0 and away[right] >= 0 and abs(away[left] - away[right]) > band.limit:
        return True
    code = _pair_code(left, right, band.root.size)
    at = np.searchsorted(band.codes, code)
    return at < band.codes.size and band.codes[at] == code


@compiled
def _distances(members, centers, distances, begin, size):
    """Return each row's distance from the center that most were compared with; -1 where it is not known."""
    away = np.full(size, -1.0)
    times = np.zeros(size, np.int64)
    for center in centers:
        times[center - begin] += 1
    pivot = np.argmax(times)
    if times[pivot] == 0:
        return away
    away[pivot] = 0.0
    for at in range(centers.size):
        if centers[at] - begin == pivot:
            away[members[at] - begin] = distances[at]
    return away


@compiled
def _by_class(root):
    """Return rows sorted by class, and where each class begins by its root."""
    begins = np.zeros(root.size + 1, np.int64)
    for row in range(root.size):
        begins[root[row] + 1] += 1
    for row in range(root.size):
        begins[row + 1] += begins[row]
    slots = begins.copy()
    ordered = np.empty(root.size, np.int64)
    for row in range(root.size):
        ordered[slots[root[row]]] = row
        slots[root[row]] += 1
    return ordered, begins


@compiled
def _append(out, count, member, center):
    """Append a pair to the output, which is doubled when it is full; return it."""
    if count == out.shape[1]:
        larger = np.empty((2, 2 * count), np.int64)
        larger[:, :count] = out
        out = larger
    out[0, count] = member
    out[1, count] = center
    return out


@compiled
def _all_left(out, count, band, pairs, unsettled):
    """Append every uncompared pair of a band; return the output, its length, and whether that was all of them."""
    root, known, size = band.root, band.known, band.root.size
    ordered, begins = _by_class(root)
    first, steps = count, 0
    most = max(STEPS_PER_PAIR * pairs, STEPS_PER_MEMBER * size)
    for row in range(size):
        if known[row]:
            continue
        low, high = begins[root[row]], begins[root[row] + 1]  # its own class, which is passed over
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
            if (other > row and not known[other]) or _is_done(band, row, other):  # two new rows: once, by the later
                continue
            if count - first == pairs:
                return out, first, False
            out = _append(out, count, band.begin + row, band.begin + other)
            count += 1
            unsettled[band.begin + row] = True
            if not known[other]:
                unsettled[band.begin + other] = True
    return out, count, True


@compiled
def _arm(out, count, band, center):
    """Append the comparisons of one center with the new members that are not of its class."""
    root, known = band.root, band.known
    for row in range(root.size):
        if known[row] or row == center or root[row] == root[center]:
            continue
        if not _is_done(band, row, center):
            out = _append(out, count, band.begin + row, band.begin + center)
            count += 1
    return out, count


@compiled
def _known_arms(out, count, band, pairs, ordered, begins):
    """Append the arms of the best unused member of each known class, largest class first."""
    first = count
    sizes = begins[1:] - begins[:-1]
    for class_ in np.argsort(-sizes, kind="mergesort"):
        if sizes[class_] == 0 or (count > first and count - first >= pairs):
            break
        for at in range(begins[class_], begins[class_ + 1]):
            row = ordered[at]
            if band.known[row] and not band.used[row]:
                out, count = _arm(out, count, band, row)
                break
    return out, count


@compiled
def _next_center(band, uses, sizes):
    """Return the unused new member whose class had fewest centers, then most members; -1 if there is none."""
    root = band.root
    center = -1
    for row in range(root.size):
        if band.known[row] or band.used[row]:
            continue
        if center < 0 or (uses[root[row]], -sizes[root[row]]) < (uses[root[center]], -sizes[root[center]]):
            center = row
    return center


@compiled
def _new_arm(out, count, band, sizes):
    """Append the arm of the next new center that has comparisons to make."""
    root, used = band.root, band.used
    uses = np.zeros(root.size, np.int64)
    for row in range(root.size):
        uses[root[row]] += used[row]
    before = count
    for _ in range(TRIES):
        center = _next_center(band, uses, sizes)
        if center < 0:
            break
        out, count = _arm(out, count, band, center)
        if count > before:
            break
        used[center] = True
        uses[root[center]] += 1
    return out, count


@compiled
def _star(out, count, band, pairs):
    """Append a star: the best unused member of each known class, largest first, and the best unused new member."""
    ordered, begins = _by_class(band.root)
    first = count
    out, count = _known_arms(out, count, band, pairs, ordered, begins)
    if count > first and not band.used.any():  # most new members join a known cluster; the rest get their star next
        return out, count
    return _new_arm(out, count, band, begins[1:] - begins[:-1])


@compiled
def _choose(starts, parents, known, result_starts, members, centers, distances, passed, pairs, limit, star):
    out = np.empty((2, 1024), np.int64)
    count = 0
    unsettled = np.zeros(known.size, np.bool_)
    for number in range(starts.size - 1):
        begin, end = starts[number], starts[number + 1]
        low, high = result_starts[number], result_starts[number + 1]
        size = end - begin
        # Join what passed, and leave out bands that are one class or have no new member.
        for at in range(low, high):
            if passed[at]:
                _join(parents, members[at], centers[at])
        root = np.empty(size, np.int64)
        for row in range(size):
            root[row] = _root(parents, begin + row) - begin
        if (root == root[0]).all() or known[begin:end].all():
            continue
        # Note what was compared.
        codes = np.empty(high - low, np.int64)
        used = np.zeros(size, np.bool_)
        for at in range(low, high):
            codes[at - low] = _pair_code(members[at] - begin, centers[at] - begin, size)
            used[centers[at] - begin] = True
        codes.sort()
        away = np.full(size, -1.0)
        if not np.isinf(limit):
            away = _distances(members[low:high], centers[low:high], distances[low:high], begin, size)
        band = _Band(begin, root, known[begin:end], used, codes, away, limit)
        # Choose all pairs that are left, or a star.
        settles = False
        if not star:
            out, count, settles = _all_left(out, count, band, pairs, unsettled)
        if not settles:
            unsettled[begin:end] = ~known[begin:end]
            out, count = _star(out, count, band, pairs)
    return out[0, :count].copy(), out[1, :count].copy(), unsettled
