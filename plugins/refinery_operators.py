"""The operators of the `refine` DAG: each makes one or two requests and hands on where their output is.

What flows between tasks is a list of parts: manifests that the next stage reads, whole or span by span.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from airflow.sdk import BaseOperator, BaseOperatorLink, Context
from refinery_launch import launch
from refinery_run import Run, base, run_of

from pipeline_tasks.errors import GateRefused

log = logging.getLogger("refinery")


class Part(TypedDict):
    """What one task of the next stage reads: a manifest, and the span of its shards (None: all of them)."""

    manifest: str
    span: list[int] | None
    name: str
    of: int
    verdict: str


class ManifestLink(BaseOperatorLink):  # type: ignore[misc]  # loaded lazily: Any
    """From a task to the manifest it committed."""

    name = "Manifest"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401, ARG002 -- Airflow's signature
        """Return the address of the page that shows the manifest."""
        return page("manifest", getattr(operator, "manifest", ""))


class DocsLink(BaseOperatorLink):  # type: ignore[misc]  # loaded lazily: Any
    """From a gate to the Data Docs of its verdict."""

    name = "Data Docs"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401, ARG002 -- Airflow's signature
        """Return the address of the gate's Data Docs."""
        return page("files", getattr(operator, "docs", ""))


def page(kind: str, path: str) -> str:
    """Return the address of one of the plugin's pages; "" (no link) when there is nothing to show."""
    return f"{base()}/{kind}/{path}" if path else ""


class Asking(BaseOperator):  # type: ignore[misc]  # loaded lazily: Any
    """What the operators share: they know their recipe, and make requests about it."""

    def __init__(self, *, recipe: str, **kwargs: Any) -> None:  # noqa: ANN401 -- BaseOperator's own
        super().__init__(**kwargs)
        self.recipe = recipe
        self.manifest = ""

    def ask(self, context: Context, run: Run, **request: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
        """Return the reply to a request about this run, and log what was asked and answered."""
        about = {"root": run.root, "recipe": self.recipe, "snapshot": run.snapshot, "run": context["ti"].run_id}
        return launch({**about, **request}, context["ti"].try_number)

    def parts(self, context: Context, run: Run, made: "Made") -> list[Part]:
        """Return what the next stage reads of a manifest: spans of it if that stage is mapped over partitions."""
        whole = Part(manifest=made["manifest"], span=None, name="", of=1, verdict=made["verdict"])
        if not made["partitions"]:
            return [whole]
        cut = self.ask(context, run, verb="spans", parent=made["manifest"], partitions=made["partitions"])
        of = len(cut["spans"])
        pairs = zip(cut["spans"], cut["names"], strict=True)
        return [{**whole, "span": span, "name": name, "of": of} for span, name in pairs]


class Made(TypedDict):
    """A manifest to hand on, its verdict, and over how many partitions the next stage is mapped (0: it is not)."""

    manifest: str
    verdict: str
    partitions: int


def partitions(run: Run, planned: int) -> int:
    """Return over how many partitions to map a stage whose recipe plans `planned` (0: not mapped)."""
    return planned and (run.partitions or planned)


class Land(Asking):
    """Commits the landed snapshot's manifest; also finds what earlier snapshots left for this one."""

    operator_extra_links = (ManifestLink(),)

    def __init__(self, *, next_partitions: int, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(**kwargs)
        self.next_partitions = next_partitions

    def execute(self, context: Context) -> list[Part]:
        """Push `landed` (where the files lie, history per stage) and return the parts of the first stage."""
        run = run_of(context)
        reply = self.ask(context, run, verb="land", input=run.landing)
        self.manifest = reply["manifest"]
        past = self.ask(context, run, verb="history")
        told(context, "land", reply, f"{reply['files']:,} files  {reply['bytes'] / 1e6:,.1f} MB")
        for name in reply["ignored"]:
            log.warning("land  %s is no crawl file and was left out", name)
        context["ti"].xcom_push(key="landed", value={"landing": reply["landing"], **past})
        planned = partitions(run, self.next_partitions)
        return self.parts(context, run, Made(manifest=reply["manifest"], verdict="", partitions=planned))


class Step(Asking):
    """What the operators of one stage share: the stage, its params and engine, and where its input is."""

    operator_extra_links: tuple[BaseOperatorLink, ...] = (ManifestLink(),)
    template_fields: Sequence[str] = ("landed",)

    def __init__(self, *, stage: str, work: Mapping[str, Any], landed: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(**kwargs)
        self.stage, self.work, self.landed = stage, work, landed

    def request(self, run: Run, part: Part) -> dict[str, Any]:
        """Return what every request about this stage says."""
        return {
            "stage": self.stage,
            "params": self.work["params"],
            "budget": self.work["budget"],
            "engine": run.engines.get(self.stage, run.engines.get("*", self.work["engine"])),
            "parent": part["manifest"],
            "history": self.landed["history"].get(self.stage, []),
            "landing": self.landed["landing"],
        }


class Refine(Step):
    """Refines one part: a partition of a stage when mapped, else the whole of it."""

    template_fields = ("landed", "part")

    def __init__(self, *, part: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- an XComArg of a Part
        super().__init__(**kwargs)
        self.part = part

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the reply of `refine`."""
        part: Part = self.part[0] if isinstance(self.part, list) else self.part
        context["part_name"] = part["name"]  # read by map_index_template
        run = run_of(context)
        reply = self.ask(context, run, verb="refine", span=part["span"], **self.request(run, part))
        self.manifest = reply["manifest"]
        told(context, self.stage, reply, funnel(reply), part)
        return {**reply, "span": part["span"]}


class Seal(Step):
    """Concatenates the partitions of a stage into its manifest."""

    template_fields = ("landed", "came", "done")

    def __init__(self, *, came: Any, done: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- XComArgs
        super().__init__(**kwargs)
        self.came, self.done = came, done

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the reply of `seal`."""
        run = run_of(context)
        cost = {key: sum(one[key] for one in self.done) for key in ("wall", "cpu")}
        spans = [part["span"] for part in self.came]
        reply = self.ask(context, run, verb="seal", spans=spans, **cost, **self.request(run, self.came[0]))
        self.manifest = reply["manifest"]
        told(context, self.stage, reply, funnel(reply))
        return reply


class Gate(Step):
    """Lets the stage's expectations read its manifest; hands it on to the next stage, or refuses."""

    operator_extra_links = (ManifestLink(), DocsLink())
    template_fields = ("landed", "made")

    def __init__(self, *, made: Any, next_partitions: int, **kwargs: Any) -> None:  # noqa: ANN401 -- an XComArg
        super().__init__(**kwargs)
        self.made, self.next_partitions = made, next_partitions

    def execute(self, context: Context) -> list[Part]:
        """Return the parts of the next stage; GateRefused, which is never retried, when the data is unwelcome."""
        run = run_of(context)
        verdict = self.ask(
            context,
            run,
            verb="judge",
            manifest=self.made["manifest"],
            previous=self.landed["previous"].get(self.stage, ""),
            bounds=self.work["bounds"],
            override=run.override.get(self.stage, ""),
        )
        self.manifest, self.docs = self.made["manifest"], verdict["docs"]
        told(context, f"{self.stage} gate", verdict, verdict["outcome"])
        self._heed(verdict)
        planned = partitions(run, self.next_partitions)
        made = Made(manifest=self.made["manifest"], verdict=verdict["verdict"], partitions=planned)
        return self.parts(context, run, made)

    def _heed(self, verdict: Mapping[str, Any]) -> None:
        why = "; ".join(sentence(one) for one in verdict["failures"])
        if verdict["outcome"] == "warn":
            log.warning("%s gate  warns: %s", self.stage, why)
        if verdict["outcome"] == "refuse":
            message = (
                f"the gate of {self.stage} refuses {self.made['manifest']}: {why}. Look at {verdict['docs']}; "
                f'if the data is as it should be, run again with the param override={{"{self.stage}": "<why>"}} '
                "(`refinery run --override`)"
            )
            raise GateRefused(message)


class Publish(Asking):
    """Makes the snapshot's manifests the next version of the recipe's dataset."""

    template_fields: Sequence[str] = ("landed", "gates")

    def __init__(self, *, landed: Any, gates: Mapping[str, Any], **kwargs: Any) -> None:  # noqa: ANN401 -- XComArgs
        super().__init__(**kwargs)
        self.landed, self.gates = landed, gates

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the reply of `publish`; whoever waits for the dataset learns of the snapshot by an asset event."""
        run = run_of(context)
        reply = self.ask(
            context,
            run,
            verb="publish",
            landing=self.landed["landing"],
            manifests={stage: parts[0]["manifest"] for stage, parts in self.gates.items()},
            verdicts={stage: parts[0]["verdict"] for stage, parts in self.gates.items()},
        )
        told(context, "publish", reply, f"version {reply['version']}  {reply['tokens']:,} tokens")
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = {"version": reply["version"], "tokens": reply["tokens"]}
            context["outlet_events"][outlet].add_partitions([run.snapshot])
        return reply


# --- Lines -----------------------------------------------------------------------------------------------------


def told(context: Context, stage: str, reply: Mapping[str, Any], text: str, part: Part | None = None) -> None:
    """Log a finished request as one line; `refinery run` shows these lines and adds them up."""
    number = context["ti"].map_index + 1
    which = f"partition {number}/{part['of']}" if part and number else ""
    facts = {"stage": stage, "task": context["ti"].task_id, "reply": dict(reply), "which": which}
    line = f"{stage:<18} {which:<15}  {text}" if which or "rows_in" in reply else f"{stage:<18} {text}"
    log.info("%s", line, extra={"refinery": facts})


def funnel(reply: Mapping[str, Any]) -> str:
    """Return where the rows of a reply went, in words."""
    counts = [("in", reply["rows_in"]), ("kept", reply["rows"])]
    aside = [("rejected", sum(reply["rejected"].values())), ("quarantined", sum(reply["quarantined"].values()))]
    told_ = "  ".join(f"{count:>7,} {what}" for what, count in [*counts, *(one for one in aside if one[1])])
    again = "  (found done)" if reply["found"] and not reply["ran"] else ""
    recalled = reply.get("recalled", {}).get("rows")
    looked = f"  (looked at {recalled:,} remembered rows)" if recalled else ""
    return f"{told_}  {reply['wall']:.1f} s{again}{looked}"


def sentence(failure: Mapping[str, Any]) -> str:
    """Return one failed expectation of a verdict in words."""
    bounds = ", ".join(f"{key.removesuffix('_value')} {value}" for key, value in failure["bound"].items())
    return f"{failure['column']} is {failure['observed']} ({bounds}): {failure['why']}"


def failed(context: Context) -> None:
    """Log why a task failed for good; `refinery run` takes its exit code from the exception."""
    _tell(context, "failed", logging.ERROR)


def retried(context: Context) -> None:
    """Log that a task will be tried again, and why."""
    _tell(context, "is tried again", logging.WARNING)


def _tell(context: Context, what: str, level: int) -> None:
    error, task = context.get("exception"), context["ti"].task_id
    facts = {"task": task, "error": error, "final": level == logging.ERROR}
    log.log(level, "%s  %s: %s", task, what, error, extra={"refinery": facts})
