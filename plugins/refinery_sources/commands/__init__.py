"""The commands about sources. Imports the rest of the extension, and what commands of the core answer by."""
