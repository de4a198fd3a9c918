"""The report of a snapshot: one HTML file that opens offline.

Imports the vocabulary, `profiles`, `store`, `gate` and the tables that a version is published with.
"""
