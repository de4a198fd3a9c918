"""Compiled loops over Arrow text buffers, in rooms by what they are about.

Imports `errors` and `schema` and nothing else of ours.
"""
