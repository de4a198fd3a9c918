"""What a version tells of itself: the report of a snapshot, one HTML file that opens offline, and its summary.

Imports `publish`, `plots` and the rooms below.
"""
