"""Repositories: of the Hugging Face Hub, and of Git."""
