"""Writes packed shards as files: tokens, ends of documents, and lineage.

Imports the vocabulary and `store`.
"""
