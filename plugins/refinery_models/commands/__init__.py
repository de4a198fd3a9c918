"""The commands that train and check models; they import the extension and the core."""
