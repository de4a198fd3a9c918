"""Writes packed shards as files: tokens, ends of documents, lineage, and Megatron's index.

Imports the vocabulary and `store`.
"""
