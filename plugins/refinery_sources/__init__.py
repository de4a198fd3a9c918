"""Where snapshots come from: a file or folder per kind of source, and how a snapshot is pulled whole or not at all."""
