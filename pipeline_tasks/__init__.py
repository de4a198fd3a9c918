"""Refinery: crawl snapshots in, clean packed training tokens out."""
