"""Finds the words of lexicons in texts, whatever hides them, in one compiled pass over the bytes.

What hides a word: letters of other styles or scripts, accents, digits and signs for letters, signs that mask letters,
characters that show nothing, letters written three times or more, and dots, hyphens or blanks between all of them.
"""

import numpy as np

from pipeline_tasks.text.base.ascii import HYPHEN, UNDERSCORE
from pipeline_tasks.text.base.characters import class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.toxicity.folding import (
    BLANK,
    DIGIT,
    FOLDED,
    INVISIBLE,
    JOINER,
    LETTER,
    MASK,
    QUOTE,
    SIGN,
)
from pipeline_tasks.text.toxicity.lexicons import NO_WORD

WORD, ORDINAL, START, END, QUOTED, DISGUISED = range(6)
"""Columns of what was found: the word of the lexicon; its number among the words of the text; its code points, the
last one exclusive; bits of the quotes beside it; whether digits, signs or gaps hide it."""

BEFORE, AFTER = 1, 2
"""Bits of QUOTED."""

FOUND_COLUMNS = 6

STATES = 32
"""Nodes of the tree that are followed at once: those that a few masked letters may stand for."""

WHOLE, SKIPPED, HIDING = range(3)
"""What a joiner is to a word: its end; nothing; a letter that it hides."""

SHORTEST = 4
"""Letters of a disguised word, at least: three stand for too much (`a55` is a road)."""

EXTRA = 8
"""Letters of a disguised word behind its beginning, at most."""

LONGEST_JOINED = 40
"""Characters of a word with joiners between its parts."""

FEWEST_SPACED = 4
"""Letters with blanks between them, at least."""

WIDEST_GAP = 3
"""Blanks between spaced letters, at most; each gap is as wide as the first."""

LONGEST_SIGNED = 64
"""Characters of a word from its first sign on: `f*f*f*...` is not read to its end from each."""

AT_SIGN, DOLLAR = ord("@"), ord("$")
REPEATED = 3
"""Equal letters in a row that no word has: they stand for one, or two."""


@inlined
def _add(states, count, node):
    """Add a node to the states unless it is there, or none, or they are full; return their count."""
    if node < 0 or count >= STATES:
        return count
    for place in range(count):
        if states[place] == node:
            return count
    states[count] = node
    return count + 1


@inlined
def _follow(children, states, count, after, added, first, second):
    """Add to `after` the children of states by one or two letters (0 for none); return their count."""
    for place in range(count):
        added = _add(after, added, children[states[place], first])
        if second:
            added = _add(after, added, children[states[place], second])
    return added


@inlined
def _follow_all(children, states, count, after):
    """Put all children of states into `after`; return their count."""
    added = 0
    for place in range(count):
        for letter in range(1, children.shape[1]):
            added = _add(after, added, children[states[place], letter])
    return added


@compiled
def disguised_word(data, begin, end, root, joiners, folding, table, scratch):
    """Return the word of the lexicon that data[begin:end] stands for, and whether it is disguised; NO_WORD for none.

    A whole word is preferred to one that begins like a word of the lexicon, and of several the first of the lexicon.
    """
    children, states, after = table.children, scratch[0], scratch[1]
    states[0], count = root, 1
    opened, extra = NO_WORD, 0
    letters = digits = signs = masks = 0
    at = begin
    while at < end and (count > 0 or opened >= 0):
        code, width = decode(data, at, end)
        traits = np.int64(class_of(folding.blocks, folding.traits, code))
        at += width
        if traits & INVISIBLE or (joiners == SKIPPED and traits & (JOINER | BLANK)):
            continue
        added = 0
        if traits & LETTER:
            folded = traits & FOLDED
            letters += 1
            repeats = 1
            ahead = at
            while ahead < end:
                code, width = decode(data, ahead, end)
                following = np.int64(class_of(folding.blocks, folding.traits, code))
                if following & INVISIBLE or (joiners == SKIPPED and following & (JOINER | BLANK)):
                    ahead += width
                    continue
                if not following & LETTER or following & FOLDED != folded:
                    break
                repeats += 1
                ahead += width
            if folded:
                added = _follow(children, states, count, after, 0, folded, 0)
                if repeats >= REPEATED:
                    for place in range(added):
                        added = _add(after, added, children[after[place], folded])
            if repeats >= REPEATED:
                letters += repeats - 1
                at = ahead
        elif traits & (DIGIT | SIGN):
            digits += (traits & DIGIT) != 0
            signs += (traits & SIGN) != 0
            stand_in = traits & FOLDED
            if stand_in:
                added = _follow(
                    children, states, count, after, 0, folding.stand_ins[stand_in, 0], folding.stand_ins[stand_in, 1]
                )
        elif traits & MASK or (joiners == HIDING and traits & JOINER):
            masks += 1
            added = _follow_all(children, states, count, after)
        states, after, count = after, states, added
        extra += 1
        best = NO_WORD
        for place in range(count):
            opening = table.openings[states[place]]
            if opening >= 0 and (best == NO_WORD or opening < best):
                best = opening
        if best >= 0:
            opened, extra = best, 0
    is_disguised = digits + signs + masks > 0
    if is_disguised:
        is_short = letters + digits + signs + masks < SHORTEST or (joiners == HIDING and masks > letters)
        if is_short or digits > letters + signs or masks > 2 * letters or (masks and letters < 2):
            return NO_WORD, False
        if extra > EXTRA:
            opened = NO_WORD
    whole = NO_WORD
    for place in range(count):
        word = table.ends[states[place]]
        if word >= 0 and (whole == NO_WORD or word < whole):
            whole = word
    return (whole if whole >= 0 else opened), is_disguised


@compiled
def joined_end(data, at, end, folding):
    """Return the byte and the characters up to which words and joiners go on from `at`, and the runs of joiners."""
    passed, stop, stopped, runs = 0, at, 0, 0
    is_gap = False
    while at < end and passed < LONGEST_JOINED:
        code, width = decode(data, at, end)
        traits = class_of(folding.blocks, folding.traits, code)
        at += width
        passed += 1
        if traits & (LETTER | DIGIT):
            stop, stopped, is_gap = at, passed, False
        elif not traits & (JOINER | INVISIBLE | MASK):
            break
        elif traits & JOINER:
            runs += not is_gap
            is_gap = True
    return stop, stopped, runs - is_gap


@compiled
def spaced_end(data, begin, end, folding):
    """Return the byte, the characters and the letters up to which single letters with equal gaps go on from `begin`."""
    at, passed, letters, gap = begin, 0, 0, 0
    stop, stopped = begin, 0
    while at < end:
        code, width = decode(data, at, end)
        if not class_of(folding.blocks, folding.traits, code) & (LETTER | DIGIT | SIGN | MASK):
            break
        after, blanks = at + width, 0
        is_joined = False
        while after < end:
            code, width = decode(data, after, end)
            traits = class_of(folding.blocks, folding.traits, code)
            if traits & BLANK:
                blanks += 1
            elif traits & (LETTER | DIGIT):
                is_joined = blanks == 0
                break
            elif not traits & INVISIBLE:
                break
            after += width
        if is_joined:
            break
        letters += 1
        code, width = decode(data, at, end)
        stop, stopped = at + width, passed + 1
        if gap == 0:
            gap = blanks
        if blanks == 0 or blanks != gap or gap > WIDEST_GAP:
            break
        passed += 1
        at += width
        while at < after:
            code, width = decode(data, at, end)
            at += width
            passed += 1
    return stop, stopped, letters


@compiled
def find_words(data, begin, end, root, folding, table, scratch, found):
    """Write the words of a lexicon in data[begin:end] to `found`, in order; return their count, and that of all words.

    `found` has a row for every second byte, at least.
    """
    children = table.children
    at, place, words, count = begin, 0, 0, 0
    tried = begin  # spaced letters were looked for up to here
    quote = False
    while at < end:
        code, width = decode(data, at, end)
        traits = np.int64(class_of(folding.blocks, folding.traits, code))
        is_word = (traits & (LETTER | DIGIT)) != 0
        if code in (AT_SIGN, DOLLAR) and at + 1 < end:
            ahead, _ = decode(data, at + 1, end)
            is_word = (class_of(folding.blocks, folding.traits, ahead) & LETTER) != 0
        if not is_word:
            if not traits & INVISIBLE:
                quote = (traits & QUOTE) != 0
            at += width
            place += 1
            continue
        first, first_place = at, place
        node, opened, repeats, letters = root, NO_WORD, 0, 0
        last = np.int64(-1)
        is_plain, is_pending = True, False
        sign, sign_place = end, 0
        stop, stop_place = at, place
        while at < end and (sign == end or place - sign_place < LONGEST_SIGNED):
            code, width = decode(data, at, end)
            traits = np.int64(class_of(folding.blocks, folding.traits, code))
            if traits & LETTER:
                folded = traits & FOLDED
                repeats = repeats + 1 if folded == last else 1
                last = folded
                is_plain = is_plain and not is_pending and repeats < REPEATED
                if node >= 0:
                    node = children[node, folded] if folded else -1
                    if node >= 0 and table.openings[node] >= 0:
                        opened = table.openings[node]
                letters += 1
            elif traits & DIGIT:
                is_plain = False
            elif traits & INVISIBLE:
                is_plain = False
                at += width
                place += 1
                if not is_pending:
                    stop, stop_place = at, place
                continue
            elif traits & (SIGN | MASK):
                if sign == end:
                    sign, sign_place = at, place
                is_pending = True
                at += width
                place += 1
                if code == DOLLAR and letters:
                    is_plain = False
                    stop, stop_place = at, place
                continue
            else:
                break
            is_pending = False
            at += width
            place += 1
            stop, stop_place = at, place
        words += 1
        word, is_disguised = NO_WORD, False
        if letters and is_plain:
            word = table.ends[node] if node >= 0 and table.ends[node] >= 0 else opened
        elif letters:
            word, is_disguised = disguised_word(data, first, stop, root, WHOLE, folding, table, scratch)
            if word < 0 and sign == first:  # a sign before a word is no letter of it
                stop, stop_place, letters = first + 1, first_place + 1, 0
                words -= 1
            elif word < 0 and sign < stop:
                stop, stop_place = sign, sign_place
                word, is_disguised = disguised_word(data, first, stop, root, WHOLE, folding, table, scratch)
        is_sure = word >= 0 and table.entries[word] >= 0 and not table.unsure[table.entries[word]]
        if not is_sure and letters and stop < end:
            code, width = decode(data, stop, end)
            beside = class_of(folding.blocks, folding.traits, code)
            if beside & JOINER:
                joined, passed, gaps = joined_end(data, stop, end, folding)
                if passed:
                    other, hides = disguised_word(data, first, joined, root, SKIPPED, folding, table, scratch)
                    is_hidden = letters == gaps == 1 and code in (HYPHEN, UNDERSCORE)  # `f--k`, and not `k-i-s-s`
                    if (other < 0 or table.entries[other] < 0) and is_hidden:
                        other, hides = disguised_word(data, first, joined, root, HIDING, folding, table, scratch)
                    if other >= 0 and table.entries[other] >= 0:
                        word, is_disguised = other, hides
                        stop, stop_place = joined, stop_place + passed
            elif beside & BLANK and stop_place - first_place == 1 and first >= tried:
                spaced, passed, singles = spaced_end(data, first, end, folding)
                if singles >= FEWEST_SPACED:
                    other, _ = disguised_word(data, first, spaced, root, SKIPPED, folding, table, scratch)
                    skipped, skipped_place = first, first_place
                    if other < 0 or table.entries[other] < 0:  # `I`, `a` or `u` before it
                        skipped, skipped_place = stop, stop_place
                        while skipped < spaced:
                            code, width = decode(data, skipped, end)
                            if not class_of(folding.blocks, folding.traits, code) & (BLANK | INVISIBLE):
                                break
                            skipped += width
                            skipped_place += 1
                        other, _ = disguised_word(data, skipped, spaced, root, SKIPPED, folding, table, scratch)
                    if other >= 0 and table.entries[other] >= 0:
                        word, is_disguised = other, True
                        stop, stop_place = spaced, first_place + passed
                        first, first_place = skipped, skipped_place
                    tried = spaced
        if word >= 0:
            quoted = BEFORE if quote else 0
            if stop < end:
                code, width = decode(data, stop, end)
                traits = class_of(folding.blocks, folding.traits, code)
                if not traits & (QUOTE | LETTER | DIGIT | BLANK) and stop + width < end:  # a full stop before the quote
                    code, _ = decode(data, stop + width, end)
                    traits = class_of(folding.blocks, folding.traits, code)
                quoted |= AFTER if traits & QUOTE else 0
            row = found[count]
            row[WORD], row[ORDINAL], row[START], row[END] = word, words, first_place, stop_place
            row[QUOTED], row[DISGUISED] = quoted, is_disguised
            count += 1
        quote = False
        at, place = max(stop, first + 1), max(stop_place, first_place + 1)
    return count, words
