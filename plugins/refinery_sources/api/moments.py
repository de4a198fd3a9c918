"""Compares and sends the values by which an API says when a record has changed: numbers, or times of ISO 8601."""

from datetime import UTC, datetime, timedelta

from pipeline_tasks.errors import ContractError
from refinery_sources.api.query import Since

EPOCH = "epoch"


def order_of(value: object) -> float | None:
    """Return the place of a value in time: a number as it is, a time in seconds (UTC without a zone); None if none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    moment = _moment(value) if isinstance(value, str) else None
    return None if moment is None else moment.timestamp()


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def sent(since: Since, newest: str | float) -> str | int | float:
    """Return what is sent for the newest value that has landed: `overlap` before it, as `format` says.

    ContractError for a time that no calendar has.
    """
    try:
        return _sent(since, newest)
    except (OverflowError, ValueError, OSError) as error:
        message = (
            f"{since.field} is {newest!a:.80} in the newest record, of which {since.param} cannot be made ({error})"
        )
        raise ContractError(message) from error


def _sent(since: Since, newest: str | float) -> str | int | float:
    if not since.format and not isinstance(newest, str):
        return newest - type(newest)(since.overlap)
    moment = _moment(newest) if isinstance(newest, str) else None
    moment = (moment or datetime.fromtimestamp(float(newest), UTC)) - timedelta(seconds=since.overlap)
    if since.format == EPOCH:
        return int(moment.timestamp())
    if since.format:
        return moment.astimezone(UTC).strftime(since.format)
    return _as_written(moment, str(newest)) if since.overlap else str(newest)


def _as_written(moment: datetime, like: str) -> str:
    """Return a time in the form that another one has."""
    if "T" not in like and " " not in like:
        return moment.date().isoformat()
    text = moment.isoformat(like[10], "auto")
    plain = text.removesuffix("+00:00")
    return f"{plain}Z" if like.endswith("Z") else text if "+" in like[10:] else plain


def bound_of(since: Since, value: str | float) -> float | None:
    """Return the place in time of a value that was sent, None if it says none."""
    if isinstance(value, str) and since.format and since.format != EPOCH:
        try:
            return datetime.strptime(value, since.format).replace(tzinfo=UTC).timestamp()
        except ValueError:
            return None
    return order_of(value)
