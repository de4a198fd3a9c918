"""Erases documents: which rows, what is left of them, object by object, and the certificate of it.

Imports the core.
"""
