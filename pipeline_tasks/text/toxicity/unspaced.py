"""Finds the words of a lexicon in texts of a language that is written without blanks: the longest, from left to right.

A word of katakana alone, or of Latin letters, is found only where no such letter is beside it: a name or a loanword of
katakana has the letters of many others (`Albuquerque` has those of a fool). What is no offense though it has such a
word is an entry, too, so that the longest one is what a reader sees. Characters that show nothing hide no word.
"""

from pipeline_tasks.text.base.characters import ASCII_END, class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.toxicity.folding import DIGIT, INVISIBLE, LETTER, QUOTE
from pipeline_tasks.text.toxicity.lexicons import NO_WORD
from pipeline_tasks.text.toxicity.words import AFTER, BEFORE, DISGUISED, END, ORDINAL, QUOTED, START, WORD

OTHER, KATAKANA, LATIN = range(3)
"""Scripts: only in the latter two a word ends where its script does."""


@inlined
def script_of(code):
    """Return the script of a code point."""
    if (0x30A1 <= code <= 0x30FF and code != 0x30FB) or 0xFF66 <= code <= 0xFF9F:
        return KATAKANA
    if (code < ASCII_END and (0x41 <= code <= 0x5A or 0x61 <= code <= 0x7A)) or 0xC0 <= code < 0x250:
        return LATIN
    return OTHER


@compiled
def longest_word(data, at, end, before, root, folding, table):
    """Return the longest word of the lexicon that begins at `at`, NO_WORD for none, its end, and whether it hides.

    `before` is the script of the character before.
    """
    node, place = root, at
    word, stop, hidden = NO_WORD, at, False
    passed, is_hidden = 0, False
    script, is_one = OTHER, True
    while place < end:
        code, width = decode(data, place, end)
        if class_of(folding.blocks, folding.traits, code) & INVISIBLE:
            if passed == 0:
                break
            place += width
            passed += 1
            is_hidden = True
            continue
        for part in range(width):
            byte = data[place + part]
            node = table.children[node, (byte >> 4) + 1]
            if node >= 0:
                node = table.children[node, (byte & 15) + 1]
            if node < 0:
                break
        if node < 0:
            break
        own = script_of(code)
        is_one = is_one and (passed == 0 or own == script)
        script = own
        place += width
        passed += 1
        if table.ends[node] >= 0:
            after = OTHER
            if place < end:
                code, _ = decode(data, place, end)
                after = script_of(code)
            is_part = is_one and script != OTHER and script in (before, after)
            if not is_part:
                word, stop, hidden = table.ends[node], place, is_hidden
    return word, stop, hidden


@compiled
def find_unspaced(data, begin, end, root, folding, table, found):
    """Write the words of a lexicon in data[begin:end] to `found`, in order; return their count, and that of all words.

    Two letters are a word, as wherever words of such languages are counted (`words.languages`).
    """
    at, place, letters, count = begin, 0, 0, 0
    before, is_quoted = OTHER, False
    while at < end:
        word, stop, hidden = longest_word(data, at, end, before, root, folding, table)
        first, first_place, first_letter, is_after_quote = at, place, letters, is_quoted
        if word < 0:
            stop = first + 1
        while at < stop:
            code, width = decode(data, at, end)
            traits = class_of(folding.blocks, folding.traits, code)
            letters += (traits & (LETTER | DIGIT)) != 0
            if not traits & INVISIBLE:
                before, is_quoted = script_of(code), (traits & QUOTE) != 0
            at += width
            place += 1
        if word >= 0:
            quoted = BEFORE if is_after_quote else 0
            if at < end:
                code, _ = decode(data, at, end)
                quoted |= AFTER if class_of(folding.blocks, folding.traits, code) & QUOTE else 0
            row = found[count]
            row[WORD], row[ORDINAL], row[START], row[END] = word, first_letter // 2, first_place, place
            row[QUOTED], row[DISGUISED] = quoted, hidden
            count += 1
    return count, (letters + 1) // 2
