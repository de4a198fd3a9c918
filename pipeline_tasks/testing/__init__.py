"""Suites that every part of a kind passes, ours and those of other packages: a file per kind, called by tests.

Imports all rooms below `demo`. A suite raises AssertionError that says what is wrong.
"""
