"""Packing: lengths into bins of one capacity, and tokens into sequences.

Imports `text.base`.
"""
