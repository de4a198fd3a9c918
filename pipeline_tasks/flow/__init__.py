"""Flow: a recipe as tasks and edges, which is data; what each task does; and a plain loop that does it.

Airflow renders the same value as a DAG (`plugins/refinery_airflow`); `running` is a run with its progress. Imports the
rooms below `service`, and that; the plan alone (`plan`) imports recipes and nothing heavy.
"""
