"""Asks the Airflow of this environment for its connections: in variables, its database, or a secrets backend."""


def is_set(name: str) -> bool:
    """Return whether Airflow has a connection of this id; that of the SDK asks no database outside of tasks."""
    from airflow.exceptions import AirflowNotFoundException
    from airflow.models import Connection

    try:
        Connection.get_connection_from_secrets(name)  # noqa: AIR311 -- as above
    except AirflowNotFoundException:
        return False
    return True
