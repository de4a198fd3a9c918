"""Reads where an engine runs: every way to write it, and what to write instead of what leads nowhere."""

import re
from dataclasses import dataclass

from pipeline_tasks.errors import RecipeError

_NO_SCHEME = re.compile(r"local(\[.*\])?|auto|yarn")

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?")


def is_cluster(address: str) -> bool:
    """Return whether an address is of something that listens elsewhere."""
    return "://" in address or re.search(r":\d+$", address) is not None


@dataclass(frozen=True, slots=True)
class Place:
    """What a connection says of an engine's place; "" and 0 are what it leaves out."""

    host: str
    port: int = 0
    scheme: str = ""

    def written(self) -> str:
        """Return the place as one address; RecipeError where host and port name two ports."""
        scheme, mark, rest = self.host.strip().rpartition("://")
        endpoint, slash, path = rest.partition("/")
        if not mark and (not endpoint or _NO_SCHEME.fullmatch(endpoint)):
            return endpoint
        named = re.search(r":(\d+)$", endpoint) if "," not in endpoint else None
        if named and self.port and int(named[1]) != self.port:
            message = (
                f"the connection names two ports, {named[1]} in its host {self.host} and {self.port}; leave one out"
            )
            raise RecipeError(message)
        port = f":{self.port}" if self.port and not named and "," not in endpoint else ""
        scheme = scheme or self.scheme
        return f"{scheme}{'://' if scheme else ''}{endpoint}{port}{slash}{path}"


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of an engine; `forms` says in words what they may be."""

    engine: str
    forms: str

    def host_and_port(self, written: str, endpoint: str) -> tuple[str, str]:
        """Return the host and the port, "" for none, of a part of an address; RecipeError where it has no host."""
        parts = _HOST.fullmatch(endpoint)
        if parts is None:
            raise self.refusal(written, "it names no host and port")
        return parts[1], parts[2] or ""

    def refusal(self, written: str, why: str) -> RecipeError:
        """Return the error of what is no address of the engine."""
        return RecipeError(
            f"{written!r} is no address of {self.engine.capitalize()}: {why}. Set the connection {self.engine}_default "
            f"(its host, or host and port) to {self.forms}"
        )
