"""Alerts: which conditions of a run people are told of, and what messages and lineage events say.

Imports the rooms below `engines`, never Airflow: `plugins/refinery_alerts.py` and `refinery_openlineage.py` send them.
"""
