"""Signed statements: what a version delivers and what it was made from, in the forms of in-toto, SLSA and DSSE.

Imports the core.
"""
