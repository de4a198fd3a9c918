"""The `refinery` command: it lists the commands, runs the DAG in this process, and starts Airflow.

Imports everything.
"""
