"""Asks the Airflow of this environment for its connections: in variables, its database, or a secrets backend."""


def is_set(name: str) -> bool:
    """Return whether Airflow has a connection of this id."""
    from airflow.exceptions import AirflowNotFoundException
    from airflow.models import Connection

    try:
        Connection.get_connection_from_secrets(name)
    except AirflowNotFoundException:
        return False
    return True
