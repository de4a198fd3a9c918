"""`refinery keep sign` signs what a version delivers and what it was made from: a statement in an envelope."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline_tasks.cli.whole_file import replace_whole
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.command import add_chosen, chosen_of, outside, print_result
from pipeline_tasks.inspect.verify.findings import Findings
from pipeline_tasks.stage import LANDING
from refinery_rights.statements.envelope import sign
from refinery_rights.statements.keys import KEY_VARIABLE, key_id, private_key
from refinery_rights.statements.statement import PAYLOAD_TYPE, Signed, read_statement, statement_bytes, statement_of
from refinery_rights.verify.statements import check_signed

SUFFIX = ".intoto.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the version, the key, and where the statement goes."""
    add_chosen(parser)
    parser.add_argument(
        "--key",
        default="",
        metavar="FILE",
        help=f"private key as PEM, Ed25519 or P-256 (default: {KEY_VARIABLE})",
    )
    parser.add_argument(
        "--to",
        "--out",
        dest="out",
        default="",
        metavar="FILE",
        help=f"where the statement goes (default: RECIPE-NUMBER{SUFFIX} here)",
    )


def answer(options: argparse.Namespace) -> int:
    """Check every byte that the version delivers, sign, and print where the statement is."""
    key = private_key(options.key)
    version = chosen_of(options)
    out = Path(outside(options.out or f"{version.recipe}-{version.number}{SUFFIX}", options.root, "--to"))
    _require_new(out)
    statement = statement_of(options.root, version)
    signed = read_statement(statement, str(out))
    name = key_id(key.public_key())
    _require_sound(signed, check_signed(options.root, signed, name, full=True).findings)
    replace_whole(out, sign(statement_bytes(statement), PAYLOAD_TYPE, key))
    facts = {
        "statement": str(out),
        "recipe": signed.recipe,
        "version": signed.number,
        "key": name,
        "subjects": len(signed.subjects),
        "dependencies": len(signed.dependencies),
        "heads": {str(each["name"]): each["digest"]["sha256"] for each in signed.entries},
    }
    print_result(options, facts, _lines(signed, facts))
    return 0


def _require_new(out: Path) -> None:
    """Raise RecipeError if there is a file: a statement that somebody has signed is not replaced."""
    if out.exists():
        message = f"{out} is there already; name another file by --to, or move it away"
        raise RecipeError(message)


def _require_sound(signed: Signed, findings: Findings) -> None:
    """Raise ContractError if the version is not as its log says: nobody should sign what is damaged."""
    if findings.problems:
        message = (
            f"{signed.title} is not what its log says, and is not signed: {findings.problems[0]}; `refinery verify` "
            "lists all, with the way to heal each"
        )
        raise ContractError(message)


def _lines(signed: Signed, facts: dict[str, Any]) -> Iterator[str]:
    landed = sum(each["name"].startswith(LANDING) for each in signed.dependencies)
    others = len(signed.dependencies) - landed
    yield f"signed     {signed.title}, snapshot {signed.snapshot}, by key {facts['key']}"
    yield f"           {counted(len(signed.subjects), 'file')} that it delivers, each of which was read"
    yield f"           {counted(landed, 'landed file')}, and {others:,} manifests, models and lists"
    for reason, gates in sorted(_overrides(signed).items()):
        yield f"           let pass by a person, because {reason!r}: {', '.join(gates)}"
    for name, digest in facts["heads"].items():
        yield f"head       {name}: {digest}"
    yield (
        f"{facts['statement']}: keep it where no writer of the root can write; `refinery verify --signature` checks it"
    )


def _overrides(signed: Signed) -> dict[str, list[str]]:
    """Return the gates that refused what was published, each once, by the reason for which a person let it pass."""
    gates: dict[str, list[str]] = {}
    for each in signed.byproducts:
        said = each["annotations"]
        if said.get("override") and said["gate"] not in gates.setdefault(said["override"], []):
            gates[said["override"]].append(said["gate"])
    return gates
