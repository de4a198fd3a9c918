"""Retention: how long objects of each kind are kept, and in which storage class, as a policy in YAML.

It imports what vacuum and rewriting import, and both of them.
"""
