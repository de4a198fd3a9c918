"""A queue of messages lets `arrivals` look at once; what it starts follows from the folders, whatever came of messages."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.plugins.test_refinery_arrivals import context, land, look, started
from tests.s3_server import S3Server


@pytest.fixture
def queue(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, str]]:
    """A client of SQS, and the address of an empty queue that `arrivals` is woken by."""
    for name, value in {**s3_server.env, "AWS_ENDPOINT_URL": s3_server.endpoint}.items():
        monkeypatch.setenv(name, value)
    sqs = boto3.client("sqs", region_name="us-east-1")
    address = sqs.create_queue(QueueName="landings")["QueueUrl"]
    monkeypatch.setenv("REFINERY_QUEUE", address)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    yield sqs, address
    sqs.delete_queue(QueueUrl=address)


def woken(times: int) -> list[Any]:
    """Return the events of the trigger that the triggerer runs for the queue."""
    from refinery_airflow.tasks.wiring import wakes

    trigger = list(wakes().objects)[1].watchers[0].trigger
    trigger.wait_time_seconds, trigger.waiter_delay = 0, 0

    async def events() -> list[Any]:
        stream = trigger.run()
        return [await anext(stream) for _ in range(times)]

    return asyncio.run(asyncio.wait_for(events(), 120))


def left(queue: tuple[Any, str]) -> int:
    sqs, address = queue
    return len(sqs.receive_message(QueueUrl=address).get("Messages", []))


def tell(queue: tuple[Any, str], name: str) -> None:
    sqs, address = queue
    sqs.send_message(QueueUrl=address, MessageBody=json.dumps({"Records": [{"s3": {"object": {"key": name}}}]}))


def test_a_message_that_comes_twice_starts_its_snapshot_once(queue: tuple[Any, str], tmp_path: Path) -> None:
    land(tmp_path / "landing", "news", 2, 2)
    tell(queue, "news/snapshot.json")
    assert len(woken(1)) == 1
    assert left(queue) == 0
    assert started(look().execute(context(tmp_path))) == ["arrival__news"]
    tell(queue, "news/snapshot.json")
    assert len(woken(1)) == 1
    assert started(look().execute(context(tmp_path, seen=("news",)))) == []


def test_a_message_that_comes_early_or_of_nothing_starts_nothing(queue: tuple[Any, str], tmp_path: Path) -> None:
    land(tmp_path / "landing", "news", 2, 1)
    for name in ("news/0.jsonl", "elsewhere/0.jsonl"):
        tell(queue, name)
        assert len(woken(1)) == 1
        assert started(look().execute(context(tmp_path))) == []


def test_a_message_that_is_lost_delays_its_snapshot_until_the_next_look(queue: tuple[Any, str], tmp_path: Path) -> None:
    sqs, address = queue
    land(tmp_path / "landing", "news", 2, 2)
    tell(queue, "news/snapshot.json")
    sqs.purge_queue(QueueUrl=address)
    assert left(queue) == 0
    assert started(look().execute(context(tmp_path))) == ["arrival__news"]
