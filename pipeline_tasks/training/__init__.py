"""Reads published training datasets on training machines; imports the vocabulary and the S3 part of `store`."""
