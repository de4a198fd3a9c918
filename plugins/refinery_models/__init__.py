"""Networks that score and embed documents, the check of what scores them, and the training of models.

Imports the core, and no other extension.
"""
