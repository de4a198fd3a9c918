"""Alerts: which conditions of a run are sent to people, and what messages and lineage events say.

Imports the rooms below `engines`, never Airflow: `plugins/refinery_airflow/alerts` sends them.
"""
