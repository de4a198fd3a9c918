"""Signals of a text that filters bound: lines, repeated n-grams, kinds of characters, stop words.

Imports `text.base` and `text.words`.
"""
