"""Parts as `refinery new` writes them under another name: a module, its test and a recipe of each kind.

Imports the vocabulary, the cards of all kinds, and `testing`.
"""
