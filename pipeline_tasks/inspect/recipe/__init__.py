"""What is known of a recipe before it runs: what it chooses, what ablations say of it, which history contradicts it.

Imports what `inspect` does.
"""
