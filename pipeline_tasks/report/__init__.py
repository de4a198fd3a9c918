"""What a version tells of itself: the report of a snapshot, one HTML file that opens offline, and its summary.

Descriptions in Croissant are made of its nodes.

Imports `publish`, `plots` and the rooms below.
"""
