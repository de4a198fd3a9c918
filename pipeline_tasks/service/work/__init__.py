"""The work that requests ask for, by the subjects of `service.requests`: it loads what Airflow's side need not have."""
