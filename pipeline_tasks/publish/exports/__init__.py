"""Formats in which a version's tokens are exported: a file per format, listed in `formats`.

Imports the vocabulary, `store` and the reader `publish.packed`.
"""
