"""Puts objects in the place of others: rows without what documents said, tables of them, and the log that says so.

Imports `store` and what it imports.
"""
