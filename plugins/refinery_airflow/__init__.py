"""Airflow's side of Refinery: what DAGs are made of, and the pages of the web UI."""
