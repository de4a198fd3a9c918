"""Airflow embedded on this machine: its home, its database, its web UI, and the runs that ask for it.

Imports the core and `tasks`. Airflow itself is imported only through the DAG file, and by its own command.
"""
