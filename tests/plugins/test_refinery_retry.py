"""Which failures Airflow tries again."""

import pytest

from pipeline_tasks import errors
from pipeline_tasks.errors import KernelFailed, RefineryError, Transient

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, RefineryError)]


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_waiting_or_another_worker_may_mend_is_tried_again(kind: type[RefineryError]) -> None:
    from refinery_airflow.tasks.retry import policy

    scheduled, here = (policy(here=here).evaluate(kind("why"), 1, 3).action.value for here in (False, True))
    assert scheduled == ("retry" if issubclass(kind, Transient | KernelFailed) else "fail")
    assert here == ("retry" if issubclass(kind, Transient) else "fail"), "a person waits: it is refined alone at once"


@pytest.mark.parametrize("defect", [TypeError("x"), KeyError("x"), AttributeError("x"), ImportError("x")])
def test_a_defect_fails_at_once(defect: Exception) -> None:
    from refinery_airflow.tasks.retry import POLICY

    assert POLICY.evaluate(defect, 1, 3).action.value == "fail"


def test_a_lost_worker_follows_the_ordinary_retries() -> None:
    from refinery_airflow.tasks.retry import POLICY

    assert POLICY.evaluate(RuntimeError("worker lost"), 1, 3).action.value == "default"


def test_the_policy_survives_the_way_through_the_database() -> None:
    from airflow.sdk import ExceptionRetryPolicy
    from refinery_airflow.tasks.retry import POLICY

    again = ExceptionRetryPolicy.deserialize(POLICY.serialize())
    assert again.evaluate(errors.GateRefused("why"), 1, 3).action.value == "fail"
    assert again.evaluate(errors.JobLost("why"), 1, 3).action.value == "retry"
