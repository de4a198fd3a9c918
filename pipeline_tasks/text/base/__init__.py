"""What every compiled loop is made of: buffers, the compiler, UTF-8, hashing, character classes, tables.

Imports `errors` alone.
"""
