"""Alerts: which conditions of a run people are told of, and the texts of the messages.

Imports the rooms below `engines`, never Airflow: `plugins/refinery_alerts.py` sends the messages.
"""
