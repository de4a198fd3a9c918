"""Models: those that score documents by their networks, and the training of those that the project ships."""
