"""Requests, and the worker daemon that answers them.

Imports everything but `inspect`, `cli` and `demo`.
"""
