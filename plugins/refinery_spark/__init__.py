"""Spark as an engine: its sessions, clusters, and the jobs that drivers are there."""
