"""Offensive and adult words in texts: lexicons, the forms that hide their words, and words that are only mentioned.

Imports `text.base` and `text.words`.
"""
