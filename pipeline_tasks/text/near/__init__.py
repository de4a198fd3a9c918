"""Nearness of texts: shingles, MinHash, candidate pairs, clusters, n-gram overlap, sketches.

Imports `text.base`.
"""
