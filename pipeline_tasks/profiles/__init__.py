"""What a manifest tells of its rows: histograms, counts, their merges, and what deduplication removed.

Imports `text.urls` and nothing else of ours.
"""
