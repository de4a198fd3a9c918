"""Formats of tokens, a module per format, and what cuts sequences into their shards.

Imports the formats' card and stretches of a dataset, and nothing that a training machine does not have.
"""
