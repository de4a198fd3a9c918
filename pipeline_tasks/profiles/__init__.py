"""Profiles of rows in a manifest: histograms, counts, their merges, and what deduplication removed.

Imports `text.urls` and nothing else of ours.
"""
