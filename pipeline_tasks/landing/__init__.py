"""Landed files: the listing of a snapshot, formats, WARC and ARC records, HTTP bodies, JSON lines, decompression.

Imports the vocabulary and `store`.
"""
