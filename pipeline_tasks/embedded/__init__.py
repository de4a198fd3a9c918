"""Airflow embedded on this machine: its home, and the `refine` DAG run in this process with progress.

Imports the rooms below the engines. Airflow itself is imported only through the DAG file, and by its own command.
"""
