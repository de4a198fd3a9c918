"""The `refinery` command: run a snapshot, look at what is there, and prove it."""

import argparse
import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline_tasks.errors import ContractError, RecipeError, RefineryError
from pipeline_tasks.publish import version_log
from pipeline_tasks.recipe import ENGINES, MAX_PARTITIONS, recipe_names

DEFAULT_RECIPE = "web"

LAST, EVERY = "the one published last", "every one"
"""Which snapshot a command means if none is named."""

Answer = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors are one paragraph on stderr and the exit code says what to do about them."""
    parser = build_parser()
    options = _parsed(parser, arguments)
    if not hasattr(options, "answer"):
        parser.print_help()
        return 0
    try:
        return int(options.answer(options))
    except RefineryError as error:
        if options.debug:
            raise
        sys.stderr.write(f"refinery: {error}\n")
        return error.exit_code
    except BrokenPipeError:  # `refinery status | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse; a root may stand after options, as in `retract DAY --dry-run ROOT`.

    argparse gives an optional word its default as soon as the word before it is read, and has no place for it later.
    """
    options, rest = parser.parse_known_args(arguments)
    late = getattr(options, "after_a_word", False) and options.output == default_root()
    if late and len(rest) == 1 and not rest[0].startswith("-"):
        options.output = rest.pop()
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; the docs are checked against it."""
    parser = argparse.ArgumentParser(prog="refinery", description=__doc__)
    parser.add_argument("--debug", action="store_true", help="show the stack trace of an error")
    commands = parser.add_subparsers(title="commands", metavar="")
    _run_parser(commands)
    _demo_parser(commands)
    _up_parser(commands)
    for name, answer, text, default in (
        ("status", _status, "what is published, what is retracted (when and why), and what is stale", EVERY),
        ("funnel", _funnel, "documents, bytes and reasons from stage to stage", LAST),
        ("verify", _verify, "re-check every digest and the account of every record", EVERY),
        ("report", _report, "where the report of a snapshot is", LAST),
    ):
        one = _command(commands, name, text)
        _place(one, default)
        one.set_defaults(answer=answer)
    _trace_parser(commands)
    _aside_parser(commands)
    _whatif_parser(commands)
    _lint_parser(commands)
    _minhash_parser(commands)
    _contamination_parser(commands)
    _duplicates_parser(commands)
    _tend_parser(commands)
    _retract_parser(commands)
    doctor = _command(commands, "doctor", "check Java, Spark, Ray, the tokenizer and the object store")
    doctor.add_argument("output", nargs="?", default="", help="root to check: a folder or s3://bucket/prefix")
    doctor.set_defaults(answer=_doctor)
    return parser


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:  # noqa: ANN401 -- argparse has no public name for it
    """Add a command that `refinery --help` and its own `--help` tell of."""
    made: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    return made


def _place(parser: argparse.ArgumentParser, default: str = LAST) -> None:
    """Add what names a published snapshot, or, by default, which."""
    parser.add_argument("output", nargs="?", default=default_root(), help="the root that a run wrote to")
    parser.add_argument("--recipe", default="", help="recipe (default: the only one there, else web)")
    parser.add_argument("--snapshot", default="", help=f"snapshot (default: {default})")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _number(kind: type[int] | type[float], least: float, most: float = math.inf) -> Callable[[str], float]:
    """Return a reader of an option's number, which argparse refuses with its usage and exit code 2."""

    def read(text: str) -> float:
        with contextlib.suppress(ValueError):
            if least <= (value := kind(text)) <= most:
                return value
        to = f"to {most:g}" if most < math.inf else "or more"
        message = f"{text!r} is no {'whole ' if kind is int else ''}number of {least:g} {to}"
        raise argparse.ArgumentTypeError(message)

    return read


def default_root() -> str:
    """Return the root used when none is named: `REFINERY_ROOT`, else `.refinery/root` here."""
    return os.environ.get("REFINERY_ROOT") or str(Path(".refinery/root").absolute())


def _run_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    run = _command(commands, "run", "refine one snapshot: the same DAG, in this process, with progress")
    run.add_argument("--input", required=True, help="folder, prefix or file of WARC, WET, JSONL or Parquet")
    run.add_argument("--output", default=default_root(), help="root to write to: a folder or s3://bucket/prefix")
    run.add_argument("--snapshot", default="", help="its name (default: last part of --input); earlier are history")
    run.add_argument("--recipe", default=DEFAULT_RECIPE, help=f"one of {', '.join(recipe_names())}")
    run.add_argument(
        "--partitions",
        type=_number(int, 0, MAX_PARTITIONS),
        default=0,
        metavar="N",
        help=f"map stages over at most this many, up to {MAX_PARTITIONS:,} (default: the recipe's)",
    )
    run.add_argument("--engine", choices=ENGINES, default="", help="run every stage there (default: the recipe's)")
    run.add_argument("--override", action="append", default=[], metavar="STAGE=WHY", help="let a refused gate pass")
    run.add_argument("--json", action="store_true", help="end with one JSON object")
    run.set_defaults(answer=_run)


def _run(options: argparse.Namespace) -> int:
    from pipeline_tasks.cli.run import run  # Airflow takes seconds to import

    return run(
        input_uri=options.input,
        output=options.output,
        snapshot=options.snapshot,
        recipe=options.recipe,
        partitions=options.partitions,
        engine=options.engine,
        override=_reasons(options.override),
        json_summary=options.json,
    )


def _reasons(written: Sequence[str]) -> dict[str, str]:
    pairs = [one.partition("=") for one in written]
    wrong = [one for one, pair in zip(written, pairs, strict=True) if not pair[0] or not pair[2].strip()]
    if wrong:
        message = f"--override {wrong[0]!r}: write STAGE=WHY; the reason is kept in the verdict"
        raise RecipeError(message)
    return {stage: why for stage, _, why in pairs}


def _demo_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    demo = _command(commands, "demo", "write two small crawl snapshots, refine both, compare with the truth")
    demo.add_argument("--folder", default=".refinery/demo", help="where the crawl and the output go")
    demo.set_defaults(answer=_demo)


def _demo(options: argparse.Namespace) -> int:
    from pipeline_tasks.demo.show import show

    return show(Path(options.folder))


def _up_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    up = _command(commands, "up", "start Airflow's web UI on this machine with everything embedded")
    up.add_argument("--port", type=int, default=8080)
    up.set_defaults(answer=_up)


def _up(options: argparse.Namespace) -> int:
    from pipeline_tasks.cli.run import up

    return up(options.port)


def _version(options: argparse.Namespace) -> version_log.Version:
    return version_log.current(options.output, _recipe(options), options.snapshot)


def _recipe(options: argparse.Namespace) -> str:
    there = version_log.recipes(options.output)
    if options.recipe or not there:
        return options.recipe or DEFAULT_RECIPE
    return there[0] if len(there) == 1 or DEFAULT_RECIPE not in there else DEFAULT_RECIPE


def _versions(options: argparse.Namespace) -> list[version_log.Version]:
    """Return the versions that the options name: one snapshot's, or the newest of every snapshot."""
    if options.snapshot:
        return [_version(options)]
    found = version_log.latest_by_snapshot(options.output, _recipe(options))
    return found or [_version(options)]


def _status(options: argparse.Namespace) -> int:
    from pipeline_tasks.inspect.funnel import status_lines

    root, recipe = options.output, _recipe(options)
    notes = {} if options.snapshot else _notes(root, recipe)
    found = version_log.latest_by_snapshot(root, recipe) if notes else _versions(options)
    if options.json:
        facts = [_facts(one) | {"note": notes.get(one.snapshot, "")} for one in found]
        gone = version_log.retractions(root, recipe).values() if notes else ()
        facts += [_facts_of_gone(one) for one in gone]
        _print([json.dumps(facts, sort_keys=True)])
    else:
        _print(status_lines(root, found, notes))
    return 0


def _facts_of_gone(gone: version_log.Retraction) -> dict[str, Any]:
    about = {"recipe": gone.recipe, "snapshot": gone.snapshot, "note": gone.account}
    return about | {"retracted_at": gone.at, "reason": gone.reason}


def _notes(root: str, recipe: str) -> dict[str, str]:
    """Return what is to be said of snapshots: retracted, or refined with another past than there is now."""
    from pipeline_tasks.upkeep import retract

    notes = {one.snapshot: one.account for one in version_log.retractions(root, recipe).values()}
    for one in retract.stale(root, recipe):
        notes[one.version.snapshot] = (
            f"stale from {one.stage} on: earlier snapshots changed since; `refinery run` it again"
        )
    return notes


def _facts(version: version_log.Version) -> dict[str, Any]:
    names = (
        "number",
        "recipe",
        "snapshot",
        "documents",
        "tokens",
        "sequences",
        "prefix",
        "landing",
        "superseded",
        "superseded_path",
    )
    return {name: getattr(version, name) for name in names}


def _funnel(options: argparse.Namespace) -> int:
    from pipeline_tasks.inspect.funnel import funnel, funnel_lines

    version = _version(options)
    steps = funnel(options.output, version)
    told = [f"{version.recipe} version {version.number}, snapshot {version.snapshot}", *funnel_lines(steps)]
    _print([json.dumps(steps, sort_keys=True)] if options.json else told)
    return 0


def _verify(options: argparse.Namespace) -> int:
    from pipeline_tasks.inspect import verify

    accounts = [verify.verify(options.output, one) for one in _versions(options)]
    if options.json:
        _print([json.dumps([verify.facts(account) for account in accounts], sort_keys=True)])
    else:
        _print(line for account in accounts for line in verify.told(account))
    problems = sum(len(account.problems) for account in accounts)
    return ContractError.exit_code if problems else 0


def _report(options: argparse.Namespace) -> int:
    version = _version(options)
    path = f"{options.output}/{version.prefix}/report.html"
    facts = {"recipe": version.recipe, "snapshot": version.snapshot, "version": version.number, "report": path}
    _print([json.dumps(facts, sort_keys=True) if options.json else path])
    return 0


def _trace_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    trace = _command(commands, "trace", "from a packed token back to its document and landed record")
    _place(trace)
    trace.add_argument("--token", type=int, action="append", help="position in the stream, from 0; may be repeated")
    trace.add_argument("--random", type=_number(int, 0), default=0, metavar="N", help="trace N tokens drawn at random")
    trace.set_defaults(answer=_trace)


def _trace(options: argparse.Namespace) -> int:
    from dataclasses import asdict
    from random import SystemRandom

    from pipeline_tasks.inspect import trace

    version = _version(options)
    drawn = [SystemRandom().randrange(max(version.tokens, 1)) for _ in range(options.random)]
    positions = [*(options.token or []), *drawn]
    if not positions:
        message = "name tokens with --token POSITION, or draw some with --random N"
        raise RecipeError(message)
    for position in positions:
        found = trace.trace(options.output, version, position)
        _print([json.dumps(asdict(found))] if options.json else [*trace.told(found), ""])
    return 0


def _aside_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    text = "what a stage set aside, by reason and language; with --to, the documents, a Parquet file per language"
    aside = _command(commands, "aside", text)
    _place(aside)
    aside.add_argument("--stage", default="filter_language", help="the stage (default: filter_language)")
    aside.add_argument("--reason", action="append", default=[], metavar="WHY", help="only these; may be repeated")
    aside.add_argument("--language", action="append", default=[], metavar="CODE", help="only these; may be repeated")
    aside.add_argument("--to", default="", metavar="FOLDER", help="a new folder to write to; `run --input` takes it")
    aside.set_defaults(answer=_aside)


def _aside(options: argparse.Namespace) -> int:
    from pipeline_tasks.inspect import rejects

    made = rejects.made_by(options.output, _version(options), options.stage)
    if not options.to:
        _print([json.dumps(rejects.counts(made))] if options.json else rejects.told(made))
        return 0
    choice = rejects.Choice(tuple(options.reason), tuple(options.language))
    written = rejects.write(options.output, made, choice, Path(options.to))
    lines = (f"{count:>12,}  {Path(options.to) / name}.parquet" for name, count in written.items())
    _print([json.dumps(written)] if options.json else lines)
    return 0


def _whatif_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    whatif = _command(commands, "whatif", "what other bounds of filter_quality would keep, from stored signals")
    _place(whatif)
    whatif.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="[LANGUAGE.]PROFILE.BOUND=NUMBER",
        help="a bound to change, for all languages or one, or packs=NAME; may be repeated",
    )
    whatif.set_defaults(answer=_whatif)


def _whatif(options: argparse.Namespace) -> int:
    from pipeline_tasks.inspect import whatif

    found = whatif.whatif(options.output, _version(options), options.set)
    _print([json.dumps(whatif.facts(found))] if options.json else whatif.told(found))
    return 0


def _lint_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    lint = _command(commands, "lint", "find what in a recipe is unreadable, out of order, dead or shadowed")
    lint.add_argument("recipe", help="a recipe's name, or the path of its YAML file")
    lint.add_argument("--output", default="", help="root whose published signals the rules are tried on")
    lint.add_argument("--snapshot", default="", help=f"snapshot to try them on (default: {LAST})")
    lint.add_argument("--allow", action="append", default=[], metavar="REASON", help="a rule that is off on purpose")
    lint.add_argument("--strict", action="store_true", help="let notes (rules that nothing fails) fail too")
    lint.add_argument("--json", action="store_true", help="print one JSON object")
    lint.set_defaults(answer=_lint)


def _lint(options: argparse.Namespace) -> int:
    from pipeline_tasks.inspect import lint

    found = lint.lint(options.recipe, options.output, options.snapshot, options.allow)
    _print([json.dumps(lint.facts(found))] if options.json else lint.told(options.recipe, found))
    return RecipeError.exit_code if any(one.fault or options.strict for one in found) else 0


def _minhash_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    text = "what a choice of bands and rows finds: the probability that a pair of documents is compared at all"
    minhash = _command(commands, "minhash", text)
    minhash.add_argument("--bands", type=int, default=14, help="bands of a signature (14)")
    minhash.add_argument("--rows", type=int, default=8, help="minima per band (8)")
    minhash.add_argument("--ngram", type=int, default=5, help="words per shingle (5)")
    minhash.add_argument("--threshold", type=float, default=0.8, help="Jaccard similarity of a near duplicate (0.8)")
    minhash.add_argument("--presets", action="store_true", help="show the settings of published recipes beside it")
    minhash.add_argument("--json", action="store_true", help="print one JSON object")
    minhash.set_defaults(answer=_minhash)


def _minhash(options: argparse.Namespace) -> int:
    from pipeline_tasks.inspect import lsh_curve

    asked = lsh_curve.checked(options.bands, options.rows, options.ngram, options.threshold)
    what = (asked, options.ngram, options.threshold, lsh_curve.PRESETS if options.presets else ())
    _print([json.dumps(lsh_curve.facts(*what))] if options.json else lsh_curve.told(*what))
    return 0


def _contamination_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    text = "evaluation items found in snapshots, or what a later benchmark would find, from sketches"
    found = _command(commands, "contamination", text)
    _place(found, EVERY)
    found.add_argument("--benchmark", default="", help="only hits of this one")
    found.add_argument("--file", action="append", default=[], metavar="NAME=FILE", help="where a benchmark's file is")
    found.add_argument("--add", action="append", default=[], metavar="[NAME=]FILE", help="look for a new benchmark")
    found.add_argument("--part", action="append", default=[], metavar="FIELD=KIND", help="question, answer or passage")
    found.add_argument("--limit", type=_number(int, 0), default=20, metavar="N", help="show at most N hits (20)")
    found.set_defaults(answer=_contamination)


def _contamination(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from pipeline_tasks.inspect import contamination

    scans, hits, sought = [], [], []
    files, parts = contamination.named(options.add), dict(one.partition("=")[::2] for one in options.part)
    for version in _versions(options):
        if files:
            scan, found = contamination.added(options.output, version, files, parts)
            scans.append(scan)
            hits += found
        else:
            known = contamination.named(options.file)
            hits += contamination.listed(options.output, version, options.benchmark, known)
            sought.append((version.snapshot, contamination.looked_for(options.output, version)))
    asked = list(contamination.told_looked_for(sought, "" if files else options.benchmark))
    if options.json:
        facts = {"looked_for": dict(sought), "scans": [asdict(one) for one in scans]}
        _print([json.dumps(facts | {"hits": [asdict(one) for one in hits]})])
    else:
        _print([*asked, *map(contamination.told_scan, scans), *contamination.told(hits, options.limit)])
    return 0


def _duplicates_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    text = "the cluster of a document: who stays, who went for it and on what proof, what the texts differ in"
    found = _command(commands, "duplicates", text)
    found.add_argument("id", help="the document's id, or as many of its first digits as no other has")
    found.add_argument("output", nargs="?", default=default_root(), help="the root that a run wrote to")
    found.add_argument("--recipe", default="", help="recipe (default: the only one there, else web)")
    found.add_argument("--limit", type=_number(int, 0), default=20, metavar="N", help="show at most N members (20)")
    found.add_argument("--json", action="store_true", help="print one JSON object")
    found.set_defaults(answer=_duplicates, after_a_word=True)


def _duplicates(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from pipeline_tasks.inspect import duplicates

    recipe = _recipe(options)
    found = duplicates.duplicates(options.output, recipe, options.id)
    if options.json:
        _print([json.dumps(asdict(found), sort_keys=True)])
    else:
        _print(duplicates.told(options.output, recipe, found, options.limit))
    return 0


def _retract_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    retract = _command(commands, "retract", "make the dataset what it would be without a snapshot")
    retract.add_argument("snapshot", help="the snapshot to take back")
    retract.add_argument("output", nargs="?", default=default_root(), help="the root that a run wrote to")
    retract.add_argument("--recipe", default="", help="its recipe: a name, or the YAML file it was run by")
    retract.add_argument("--reason", default="", help="why; kept in the dataset's log")
    retract.add_argument("--undo", action="store_true", help="bring a retracted snapshot back")
    retract.add_argument("--dry-run", action="store_true", help="only tell what would be refined again")
    retract.add_argument("--engine", choices=ENGINES, default="", help="run every stage there (default: the recipe's)")
    retract.add_argument("--override", action="append", default=[], metavar="STAGE=WHY", help="let a refused gate pass")
    retract.set_defaults(answer=_retract, after_a_word=True)


def _retract(options: argparse.Namespace) -> int:
    from pipeline_tasks.cli.run import retract

    return retract(
        output=options.output,
        recipe=options.recipe or _recipe(options),
        snapshot=options.snapshot,
        reason=options.reason,
        undo=options.undo,
        dry_run=options.dry_run,
        engine=options.engine,
        override=_reasons(options.override),
    )


def _tend_parser(commands: Any) -> None:  # noqa: ANN401 -- argparse has no public name for it
    tend = _command(commands, "tend", "list (and with --delete remove) what no manifest names")
    days, share = _number(float, 0), _number(float, 0, 1)
    tend.add_argument("output", nargs="?", default=default_root(), help="the root to tend")
    tend.add_argument("--grace", type=days, default=7.0, metavar="DAYS", help="leave alone what is younger (7)")
    tend.add_argument("--expire", type=days, default=0.0, metavar="DAYS", help="also stages that no version names")
    tend.add_argument("--limit", type=share, default=0.1, help="refuse to remove more than this share of bytes (0.1)")
    tend.add_argument("--delete", action="store_true", help="remove; without it, only list")
    tend.add_argument("--compact", action="store_true", help="merge what many snapshots remembered, for fewer lookups")
    tend.add_argument("--json", action="store_true", help="print one JSON object")
    tend.set_defaults(answer=_tend)


def _tend(options: argparse.Namespace) -> int:
    from pipeline_tasks.engines.choose import engine
    from pipeline_tasks.upkeep import compact, vacuum

    made = compact.compact(options.output, engine("local")) if options.compact else []
    found = vacuum.survey(options.output, options.grace * vacuum.DAY, options.expire * vacuum.DAY)
    facts = {**vacuum.facts(found), "compacted": {one.fingerprint: list(one.parents) for one in made}}
    told = [*compact.lines(made), *vacuum.told(found)]
    _print([json.dumps(facts, sort_keys=True)] if options.json else told)
    if options.delete:
        vacuum.sweep(options.output, found, options.limit)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from pipeline_tasks.upkeep.doctor import checks

    failed = 0
    for check in checks(options.output):
        failed += not check.ok
        _print([f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<14}{check.found}"])
    return RecipeError.exit_code if failed else 0


def _print(lines: Sequence[str] | Iterator[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
