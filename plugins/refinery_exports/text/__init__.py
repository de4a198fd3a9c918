"""Formats of clean text, and the documents of a version that they are written of.

Imports the formats' card, and of the core the vocabulary, `store` and `publish`.
"""
