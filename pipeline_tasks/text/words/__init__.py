"""Words: where they begin and end in every language, spaCy's rules for English, word lists, language codes.

Imports `text.base`.
"""
