"""Compiled loops over Arrow text buffers."""
