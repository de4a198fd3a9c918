"""Notes what publishers say of the use of each page, in itself and in robots.txt, and rejects or tags opt-outs."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urljoin

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import UnitCost, Wiring
from pipeline_tasks.file_types import HTML, TEXT
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import HTTP_RIGHTS, PAGE, RIGHT, RIGHTS, ROBOTS, TYPE
from pipeline_tasks.stage import (
    Batches,
    Engine,
    HistoryReader,
    Idle,
    Layer,
    Section,
    Shards,
    Stage,
    always,
    buckets_for,
    reject,
    replace_column,
)
from pipeline_tasks.text.rights.signals import OPT_OUTS, Signal, bounded

if TYPE_CHECKING:
    from pipeline_tasks.text.rights.robots import Robots

pc: Any = pyarrow.compute

Action = Literal["reject", "tag", "keep"]

RSL = "rsl"
ACTED_ON = (*OPT_OUTS, RSL)
"""The signals that the policy has an action for, in the order in which they become a reason."""

ROBOTS_RECORD = "check_rights:robots_record"
"""The reason of the record of a robots.txt, which has done its work here."""

AGENTS = (
    "CCBot",
    "GPTBot",
    "ClaudeBot",
    "Google-Extended",
    "Applebot-Extended",
    "Meta-ExternalAgent",
    "Amazonbot",
)
"""Crawlers, and tokens without one, whose operators say that robots.txt decides by them what models are trained on.

A publisher who closes a page to any of them says no to training, and seldom knows all of their names.
"""

ROBOTS_FILES = pa.schema(
    [
        pa.field("origin", pa.string()),  # scheme, host and port that the file is for
        pa.field("fetched", pa.int64()),  # `crawled_at` as a number that sorts as time does
        pa.field("file", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("crawled_at", pa.string()),
        pa.field("status", pa.int32()),
        pa.field("location", pa.string()),  # where a redirect leads
        pa.field("body", pa.binary()),  # what of the file can say something
    ]
)
"""The robots.txt files of a snapshot; of answers that follow each other and are equal, the first."""

FOUND, REDIRECTS, MISSING, FAILED = (range(low, low + 100) for low in (200, 300, 400, 500))
"""Classes of the status of an answer."""

PAGES = (HTML, None)
"""Types of files whose markup is read."""

HOPS = 5
"""Redirects of a robots.txt that are followed (RFC 9309, 2.3.1.2)."""

LOOKUP_ROWS = 1024
"""Pages whose robots.txt files are in memory at once, each of 500 KiB at most."""

SHOWN = 5
"""Signals in the evidence of a row."""

_BODY = "robots_body"
_READS = ("url", "kind", "payload", "metadata", TYPE)
_JUDGED = ("kind", "url", "crawled_at", "status", "rights", _BODY)
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Params:
    """What becomes of a page, by each signal that reserves a use: `reject`, `tag` or `keep` it.

    All signals of a page, whatever becomes of it, are in `rights`. `tag` names the first that it tags in `opt_out`, by
    which a build can select; `keep` leaves it at that. `agents` are those that robots.txt, `X-Robots-Tag` and `<meta>`
    may name; what is said to others is no signal. `robots_txt` is a page that one of them may not fetch, by the newest
    robots.txt of its scheme, host and port that is not younger than the page, else by the oldest that is; a status of
    4xx allows all, 5xx nothing (RFC 9309). `content_usage` is `train-ai=n` of draft-ietf-aipref-attach-04, in a header
    field, `<meta>` or robots.txt, `ai-train=no` of Content-Signal, and a license of RSL 1.0 in the page that prohibits
    `ai-train`; `search` is that of search. `tdm_reservation` is TDMRep's, of a PDF in its XMP. `noai`, `noimageai`,
    `noml`, `noarchive` (`nocache`), `nosnippet` and `noindex` (`none`) are directives of `X-Robots-Tag` and `<meta>`,
    and `rsl` is any license of RSL 1.0, which may permit or prohibit. Of statements that contradict each other the
    strictest counts.
    """

    agents: tuple[str, ...] = AGENTS
    robots_txt: Action = "tag"
    content_usage: Action = "tag"
    tdm_reservation: Action = "tag"
    noai: Action = "tag"
    noml: Action = "tag"
    noimageai: Action = "keep"
    noarchive: Action = "keep"
    nosnippet: Action = "keep"
    noindex: Action = "keep"
    search: Action = "keep"
    rsl: Action = "keep"

    def __post_init__(self) -> None:
        """Raise RecipeError for an agent that no robots.txt can name."""
        for agent in self.agents:
            if not agent.replace("-", "").replace("_", "").replace(".", "").isalnum() or not agent.isascii():
                message = f"check_rights: agents: {agent[:100]!r} is no product token, as `CCBot`; correct it"
                raise RecipeError(message)

    def signals_with(self, action: Action) -> tuple[str, ...]:
        """Return the signals that have an action, the strongest first."""
        actions = {declared.name: getattr(self, declared.name) for declared in fields(self)}
        return tuple(signal for signal in ACTED_ON if actions[signal] == action)


# --- What pages say themselves --------------------------------------------------------------------------------


def read_signals(pages: Batches, *, agents: tuple[str, ...]) -> Batches:
    """Append `rights` and `license` of each page, and what matters of each robots.txt."""
    from pipeline_tasks.text.rights.licenses import agreed
    from pipeline_tasks.text.rights.robots import essential

    named = frozenset(agent.lower() for agent in agents)
    for batch in pages:
        is_robots = pc.equal(batch["kind"], ROBOTS).to_pylist()
        signals = [
            [] if robots else [*header, *markup]
            for robots, header, markup in zip(
                is_robots, header_rights(batch["metadata"], named), _of_files(batch, named), strict=True
            )
        ]
        licenses = [agreed(signal.value for signal in own if signal.signal == "license") for own in signals]
        bodies = [
            essential(bytes(payload.as_buffer())) if robots and payload.is_valid else None
            for robots, payload in zip(is_robots, batch["payload"], strict=True)
        ]
        annotated = replace_column(batch, "rights", _rights(map(bounded, signals)))
        annotated = replace_column(annotated, "license", pa.array(licenses, pa.string()))
        yield replace_column(annotated, _BODY, pa.array(bodies, pa.binary()))


def header_rights(metadata: pa.Array, agents: frozenset[str]) -> Iterator[list[Signal]]:
    """Yield the signals of each record's header fields."""
    from pipeline_tasks.text.rights.directives import header_signals

    has_fields = pc.fill_null(pc.match_substring(metadata, f'"{HTTP_RIGHTS}":'), fill_value=False)
    for is_sent, text in zip(has_fields.to_pylist(), metadata, strict=True):
        sent = json.loads(text.as_py()).get(HTTP_RIGHTS) if is_sent else None
        named = sent if isinstance(sent, dict) else {}  # lines and tables may have anything under its name
        yield [*header_signals({name: value for name, value in named.items() if isinstance(value, str)}, agents)]


def _of_files(batch: pa.RecordBatch, agents: frozenset[str]) -> Iterator[list[Signal]]:
    """Yield the signals of each page's markup, those of the packets of another file, and none of plain text."""
    from pipeline_tasks.text.rights.markup import markup_signals
    from pipeline_tasks.text.rights.packets import packet_signals

    for kind, payload in zip(batch[TYPE].to_pylist(), batch["payload"], strict=True):
        if kind == TEXT or not payload.is_valid:
            yield []
        elif kind in PAGES:
            yield markup_signals(bytes(payload.as_buffer()), agents)
        else:
            yield packet_signals(bytes(payload.as_buffer()))


def _rights(signals: Iterator[list[Signal]]) -> pa.Array:
    return pa.array([[signal._asdict() for signal in each] for each in signals], pa.list_(RIGHT))


# --- What robots.txt files say ----------------------------------------------------------------------------------


def robots_files(signals: Batches) -> Batches:
    """Yield the robots.txt files among records."""
    from pipeline_tasks.text.base.timestamps import sortable_timestamps
    from pipeline_tasks.text.urls.keys import origins

    for batch in signals:
        files = batch.filter(pc.equal(batch["kind"], ROBOTS))
        moved = [json.loads(text or "{}").get("http-location") for text in files["metadata"].to_pylist()]
        hosts = origins(files["url"])
        columns = {
            "origin": hosts,
            "fetched": sortable_timestamps(files["crawled_at"]),
            "location": pa.array([place if isinstance(place, str) else None for place in moved], pa.string()),
            "body": files[_BODY],
        }
        named = [columns.get(name, files[name] if name in files.schema.names else None) for name in ROBOTS_FILES.names]
        rows = pa.RecordBatch.from_arrays(named, schema=ROBOTS_FILES)
        yield rows.filter(pc.is_valid(hosts))


def changed_files(files: Batches) -> Batches:
    """Keep the robots.txt files of a bucket, sorted by origin and time, that differ from the one before."""
    last: tuple[object, ...] = ()
    for batch in files:
        said = zip(*(batch[name].to_pylist() for name in ("origin", "status", "location", "body")), strict=True)
        states = [last, *said]
        last = states[-1]
        yield batch.filter(pa.array([before != after for before, after in pairwise(states)], pa.bool_()))


class RobotsFile(NamedTuple):
    """A row of `ROBOTS_FILES`."""

    origin: str
    fetched: int
    file: str
    offset: int
    crawled_at: str | None
    status: int | None
    location: str | None
    body: bytes | None


class _Answer:
    """An answer to `/robots.txt`, which is parsed if it decides about a page, and once for all pages of its host."""

    def __init__(self, row: RobotsFile, agents: Sequence[str]) -> None:
        self.row = row
        self._agents = agents

    @cached_property
    def rules(self) -> "Robots":
        """What the file says to the agents."""
        from pipeline_tasks.text.rights.robots import Robots

        return Robots(self.row.body or b"", self._agents)

    @cached_property
    def target(self) -> str:
        """The origin whose robots.txt the answer leads to, "" if it leads nowhere else."""
        from pipeline_tasks.text.urls.keys import origins

        row = self.row
        if not row.location or row.status not in REDIRECTS:
            return ""
        try:
            target = urljoin(f"{row.origin}/robots.txt", row.location)
        except ValueError:  # an address that is none
            return ""
        origin = origins(pa.array([target], pa.string()))[0].as_py() or ""
        return origin if origin != row.origin and target.partition("#")[0].endswith("/robots.txt") else ""


class RobotsFiles:
    """The robots.txt files of some hosts, oldest first; those of others are read where a redirect leads to them."""

    def __init__(self, rows: Callable[[pa.Array], pa.Table], origins: pa.Array, agents: Sequence[str]) -> None:
        self._rows = rows
        self._agents = agents
        self._answers: dict[str, list[_Answer]] = {}
        self._read(origins)

    def _read(self, origins: pa.Array) -> None:
        rows = self._rows(origins).select(ROBOTS_FILES.names).to_pylist()
        for row in sorted(rows, key=lambda row: (row["fetched"], row["file"], row["offset"])):
            self._answers.setdefault(row["origin"], []).append(_Answer(RobotsFile(**row), self._agents))

    def in_force(self, origin: str, moment: int) -> _Answer | None:
        """Return the newest answer that is not younger than a moment, else the oldest; where it leads, if it does."""
        answer = self._newest(origin, moment)
        for _ in range(HOPS):
            target = answer.target if answer else ""
            if not target:
                return answer
            if target not in self._answers:
                self._answers[target] = []
                self._read(pa.array([target], pa.string()))
            answer = self._newest(target, moment)
        return answer

    def _newest(self, origin: str, moment: int) -> _Answer | None:
        answers = self._answers.get(origin, [])
        oldest = answers[0] if answers else None
        return next((answer for answer in reversed(answers) if answer.row.fetched <= moment), oldest)


class Said(NamedTuple):
    """What a robots.txt says of a page: a word for `RIGHTS`' column `robots_txt`, and its signals."""

    state: str | None
    signals: list[Signal]


def said_of(url: str, answer: _Answer | None) -> Said:
    """Return what an answer to `/robots.txt` says of a URL: nothing without one, or with one that leads nowhere."""
    from pipeline_tasks.text.rights.robots import ALLOWED, DISALLOWED, SOURCE, UNREACHABLE

    status = answer.row.status if answer else None
    if answer is None or status not in (*FOUND, *MISSING, *FAILED):
        return Said(None, [])
    at = answer.row.crawled_at
    if status in FAILED:
        return Said(UNREACHABLE, [Signal("robots_txt", f"status {status}", SOURCE, at=at)])
    if status in MISSING:
        return Said(ALLOWED, [])
    closed = list(answer.rules.disallowed(url))
    licenses = [Signal(RSL, address, SOURCE) for address in answer.rules.licenses]
    signals = [signal._replace(at=at) for signal in (*closed, *answer.rules.preferences(url), *licenses)]
    return Said(DISALLOWED if closed else ALLOWED, signals)


# --- The policy -------------------------------------------------------------------------------------------------


def judge(pages: Batches, files: HistoryReader, *, params: Params) -> Batches:
    """Add what robots.txt files say of each page, and reject or tag it by the policy."""
    from pipeline_tasks.text.base.timestamps import sortable_timestamps
    from pipeline_tasks.text.urls.keys import origins

    for batch in pages:
        moments = sortable_timestamps(batch["crawled_at"])
        hosts = pc.if_else(pc.equal(batch["kind"], ROBOTS), pa.scalar(None, pa.string()), origins(batch["url"]))
        said: list[Said] = []
        for start in range(0, batch.num_rows, LOOKUP_ROWS):
            part = slice(start, start + LOOKUP_ROWS)
            said += _said(batch["url"][part], hosts[part], moments[part], files, params.agents)
        yield _judged(batch, said, params)


def _said(
    urls: pa.Array, hosts: pa.Array, moments: pa.Array, files: HistoryReader, agents: Sequence[str]
) -> Iterator[Said]:
    known = RobotsFiles(files.rows, pc.unique(hosts).drop_null(), agents)
    for url, origin, moment in zip(urls.to_pylist(), hosts.to_pylist(), moments.to_pylist(), strict=True):
        yield said_of(url, known.in_force(origin, moment) if origin else None)


def _judged(batch: pa.RecordBatch, said: Sequence[Said], params: Params) -> pa.RecordBatch:
    own = [[Signal(**signal) for signal in signals] for signals in batch["rights"].to_pylist()]
    rights = [bounded([*signals, *more.signals]) for signals, more in zip(own, said, strict=True)]
    rejecting, tagging = params.signals_with("reject"), params.signals_with("tag")
    is_robots = pc.equal(batch["kind"], ROBOTS).to_pylist()
    verdicts = [
        (ROBOTS_RECORD, _CANONICAL.encode({"status": status})) if robots else verdict(signals, rejecting)
        for robots, status, signals in zip(is_robots, batch["status"].to_pylist(), rights, strict=True)
    ]
    tags = [first(signals, tagging) for signals in rights]
    judged = batch.drop_columns([_BODY, "status"])
    columns = {
        "rights": _rights(iter(rights)),
        "robots_txt": pa.array([each.state for each in said], pa.string()),
        "opt_out": pa.array([tag.signal if tag else None for tag in tags], pa.string()),
    }
    for name, values in columns.items():
        judged = replace_column(judged, name, values)
    reasons, evidence = (pa.array([each[side] for each in verdicts], pa.string()) for side in (0, 1))
    return reject(judged, reasons, evidence)


def first(signals: Sequence[Signal], wanted: Sequence[str]) -> Signal | None:
    """Return the strongest signal of those that are wanted, None if there is none."""
    return next((signal for name in wanted for signal in signals if signal.signal == name), None)


def verdict(signals: Sequence[Signal], rejecting: Sequence[str]) -> tuple[str | None, str | None]:
    """Return reason and evidence of a page that has a signal of those that reject, None for both if it has none."""
    strongest = first(signals, rejecting)
    if strongest is None:
        return None, None
    shown = [signal for signal in signals if signal.signal in rejecting][:SHOWN]
    proof = [{name: value for name, value in signal._asdict().items() if value is not None} for signal in shown]
    return f"check_rights:{strongest.signal}", _CANONICAL.encode({"rights": proof})


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Read what pages say, bring robots.txt files together by host, and judge every page where it is.

    What pages say follows from them and the agents alone: another policy finds it again (`shared`). Pages stay where
    they are: each task looks up the hosts of its own in the files, which are sorted by host, so that a host of any size
    is no more than its robots.txt. The files are this snapshot's history, for `refinery takedown --rights`.
    """
    signals = on.map(partial(read_signals, agents=params.agents), shards, layer=Layer(reads=_READS), shared=True)
    reads = ("kind", "url", "crawled_at", "status", "metadata", _BODY, "file", "offset")
    files = on.map(robots_files, signals, reads=reads)
    by_host = on.group(
        changed_files, files, by="origin", order=("fetched", "file", "offset"), buckets=buckets_for(files)
    )
    kept = on.save_history("robots", by_host)
    layer = Layer(reads=_JUDGED, stores=("rights",), kept_only=("payload", "text"))
    return on.map(partial(judge, params=params), signals, broadcast=kept, layer=layer)


def idle(_: Params, profiles: Mapping[str, Any]) -> tuple[Idle, ...]:
    """Return that no robots.txt was found, if no page has the state of one."""
    states = profiles.get("robots_txt")
    if states is None or states["count"]:
        return ()
    remedy = "land those of the crawl beside its pages; `refinery pull cc --kind robotstxt` gets them"
    return (Idle("no robots.txt", remedy),)


STAGE = Stage(
    name="check_rights",
    run=run,
    params=Params,
    reads=PAGE,
    writes=pa.schema([*PAGE, *RIGHTS]),
    version=4,
    splits=False,
    libraries={"protego": always, UNICODE: always},
    history={"robots": Section(ROBOTS_FILES, key="origin", order=("fetched", "file", "offset"))},
    reads_history=False,
    idle=idle,
    engine="spark",
    profiled=("license", "robots_txt", "opt_out"),
    reasons=(ROBOTS_RECORD, *(f"check_rights:{signal}" for signal in ACTED_ON)),
    title="What publishers say of the use of a page",
    cost=UnitCost(0.02, 1.01, 0.02, 8),
    wiring=Wiring(sets={"ingest": {"rights": True}}),
    no_page=(ROBOTS_RECORD,),
)
