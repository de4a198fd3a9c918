"""DAGs that Airflow's database knows, as its processor leaves them once it has read their files."""

from collections.abc import Iterator
from contextlib import contextmanager

BUNDLE = "known_dags"


@contextmanager
def known_dags(*names: str) -> Iterator[None]:
    """Know DAGs of these names for a while."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    with create_session() as session:
        session.merge(DagBundleModel(name=BUNDLE))
        session.flush()
        for name in names:
            session.add(DagModel(dag_id=name, bundle_name=BUNDLE, is_stale=False))
    try:
        yield
    finally:
        with create_session() as session:
            session.execute(delete(DagModel).where(DagModel.bundle_name == BUNDLE))
            session.execute(delete(DagBundleModel).where(DagBundleModel.name == BUNDLE))
