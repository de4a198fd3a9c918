"""URLs: their normal form, the site they belong to, and the lists that block them.

Imports `text.base`.
"""
