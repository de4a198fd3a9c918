"""A process counts the requests to S3 that it sends again, and the seconds until then; each is counted once."""

import os

from pipeline_tasks.store.s3 import waits as s3_waits
from pipeline_tasks.store.s3.waits import NO_WAITS
from pipeline_tasks.store.storage import connect
from tests.chain import command
from tests.faulty_s3 import FaultyS3


def test_requests_that_are_sent_again_are_counted(s3_root: str, faults: FaultyS3) -> None:
    store, body = connect(s3_root), os.urandom(5000)
    s3_waits.take()
    assert store.create("object", body)
    assert store.read("object") == body
    assert s3_waits.take() == NO_WAITS
    faults.coming += [("PUT", (503, "SlowDown"))] * 2
    assert store.create("other", body)
    faults.coming += [("GET", (503, "SlowDown")), ("GET", "lost_request"), ("GET", "short_body"), ("GET", (520, "Web"))]
    assert store.read("other") == body
    assert faults.coming == []
    waits = s3_waits.take()
    assert (waits.requests, waits.seconds > 0) == (6, True)
    assert s3_waits.take() == NO_WAITS


def test_the_waits_of_a_parent_are_not_counted_by_its_children() -> None:
    program = """
import os
from pipeline_tasks.store.s3 import waits as s3_waits
s3_waits.count_repeated(0.5)
child = os.fork()
if child == 0:
    os._exit(s3_waits.take().requests)
assert os.waitpid(child, 0)[1] == 0
assert s3_waits.take() == s3_waits.Waits(1, 0.5)
"""
    ended = command("-c", program)
    assert ended.returncode == 0, ended.stderr
