"""Reads PDFs: their text by PDFium, the order and kind of their blocks by what stands where in which font."""

from refinery_files.pdf.reading import read

__all__ = ["read"]
