"""Parts that every compiled loop uses: buffers, the compiler, UTF-8, hashing, character classes, tables.

Imports `errors` alone.
"""
