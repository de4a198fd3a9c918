"""What arrived: the listing of a snapshot, its formats, archives, HTTP bodies, JSON lines and decompression.

Imports the vocabulary and `store`.
"""
