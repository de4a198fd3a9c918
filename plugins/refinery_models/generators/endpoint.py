"""Has a server write that speaks OpenAI's protocol: vLLM, SGLang, llama.cpp's server, or a service.

The recipe says which model, and the operator where it is (`server`). What it writes may depend on its
batches, unless its kernels are invariant: the first text that is committed counts.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators.generator import Model, Request, Sampling, Stop, Written, plain_prompt
from pipeline_tasks.generators.kinds import Kind
from pipeline_tasks.nearest import near
from pipeline_tasks.sealed import sha256
from refinery_models.generators.server import DONE, Failing, Reply, Server, Stopped

MODELS, CHAT, COMPLETIONS = "/models", "/chat/completions", "/completions"

SEEDS = 1 << 31
"""Seeds that every server takes: llama.cpp's have 32 bits, and some have a sign."""

_STOPS: Mapping[str, Stop] = {"stop": "stop", "eos": "stop", "eos_token": "stop", "length": "length"}
_FILTERED = "content_filter"
_TOO_LONG = re.compile(
    r"context.{0,30}(length|size|window)|too long|exceed_context|maximum.{0,40}tokens", re.IGNORECASE
)
_FAILED = 500
_TOO_LARGE = 413


def load(model: Model, sampling: Sampling, *, path: str = CHAT) -> "Endpoint":
    """Return a generator; RecipeError without a server, or if it has no model of that name; Transient if it is away."""
    server = Server.of_environment()
    named = f"{model.name}@{sha256(f'{model.name} {model.revision}'.encode())[:16]}"
    hardware = f"a server of {_owner(server, model.name) or 'models'}"
    return Endpoint(hardware, named, model.license, model.name, sampling, server, path)


def check(_model: Model) -> None:
    """Ask nothing: where a run is planned, no server of models need be."""


CHATTING = Kind(load, check, is_served=True)
"""Chats: the server puts the messages into the template of its model."""

COMPLETING = Kind(partial(load, path=COMPLETIONS), check, is_served=True)
"""Models without a template: the server gets the text that the model goes on with."""


def _owner(server: Server, name: str) -> str:
    """Return what the server says of whose model it is; RecipeError if it lists models, and none of this name."""
    listed = server.ask(MODELS)
    entries = {str(entry.get("id", "")): entry for entry in _objects(listed.body.get("data"))}
    if listed.status == DONE and entries and name not in entries:
        meant = ", ".join(map(repr, near(name, entries, 3)))
        message = f"the server at {server.address} has no model {name!r}; the nearest are {meant}"
        raise RecipeError(message)
    return str(entries.get(name, {}).get("owned_by", ""))[:50]


@dataclass(eq=False)
class Endpoint:
    """A connection to a server, which has as many requests at a time as the operator says.

    The digest in its `name` is that of what the recipe says of the model: nobody here sees its weights.
    """

    hardware: str
    name: str
    license: str
    _model: str
    _sampling: Sampling
    _server: Server
    _path: str

    def write(self, requests: Sequence[Request]) -> Iterator[tuple[int, Written]]:
        """Yield what the server writes, in the order in which it answers.

        Where it fails for good, the requests on their way are waited for, and what they bring is yielded before.
        """
        server = replace(self._server, stop=threading.Event())
        pool = ThreadPoolExecutor(server.requests, thread_name_prefix="endpoint")
        asked = {pool.submit(self._written, server, request): place for place, request in enumerate(requests)}
        error: BaseException | None = None
        try:
            for done in as_completed(asked):
                if (failed := done.exception()) is None:
                    yield asked[done], done.result()
                elif not isinstance(failed, Stopped):
                    error = error or failed
        finally:
            server.stop.set()
            pool.shutdown(cancel_futures=True)
            server.close()
        if error:
            raise error

    def _written(self, server: Server, request: Request) -> Written:
        """Return what is written for a request, or why there is nothing; an error ends the others that wait."""
        if server.stop.is_set():
            raise Stopped
        try:
            reply = self._reply(server, request)
            return self._read(reply) if reply.status == DONE else _refused(reply)
        except BaseException:
            server.stop.set()
            raise

    def _reply(self, server: Server, request: Request) -> Reply:
        """Return the server's answer; one that is well, and fails at this request each time, has answered it."""
        try:
            return server.ask(self._path, self._body(request))
        except Failing as error:
            if error.status == _FAILED and replace(server, patience=0.0).ask(MODELS).status == DONE:
                return Reply(_FAILED, {})
            raise

    def _body(self, request: Request) -> dict[str, object]:
        sampling = self._sampling
        said = [("system", request.system)] * bool(request.system) + [("user", request.user)]
        asked: dict[str, object] = {"messages": [{"role": role, "content": content} for role, content in said]}
        if self._path == COMPLETIONS:
            asked = {"prompt": plain_prompt(request)}
        drawn = {"seed": request.seed % SEEDS, "top_p": sampling.top_p} if sampling.temperature else {}
        bounds = {"max_tokens": sampling.max_tokens, "temperature": sampling.temperature}
        return {"model": self._model, **asked, **bounds, **drawn, "n": 1, "stream": False}

    def _read(self, reply: Reply) -> Written:
        """Return the text of an answer; RecipeError if another model wrote it."""
        _require_model(self._model, str(reply.body.get("model") or self._model), self._server)
        choice = next(iter(_objects(reply.body.get("choices"))), {})
        message = choice.get("message")
        of_chat = message if isinstance(message, dict) else {}
        text = choice.get("text") if self._path == COMPLETIONS else of_chat.get("content")
        usage = reply.body.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        tokens_in, tokens_out = _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))
        reason = str(choice.get("finish_reason") or "")
        if reason == _FILTERED or of_chat.get("refusal"):
            return Written(None, "refused", tokens_in, tokens_out, _FILTERED if reason == _FILTERED else "refusal")
        if not isinstance(text, str) or reason not in _STOPS:
            return Written(None, "error", tokens_in, tokens_out, f"finish_{_word(reason) or 'unknown'}")
        return Written(_whole(text), _STOPS[reason], tokens_in, tokens_out)


def _refused(reply: Reply) -> Written:
    """Return why a server wrote nothing for a request that it understood, never in its words: they may quote it."""
    said = reply.body.get("error")
    error = said if isinstance(said, dict) else reply.body
    code = next((_word(error.get(key)) for key in ("code", "type") if isinstance(error.get(key), str)), "")
    words = f"{code} {error.get('type')} {error.get('message')}"
    if _FILTERED in words:
        return _without("refused", _FILTERED)
    if reply.status == _TOO_LARGE or _TOO_LONG.search(words):
        return _without("too_long", code or f"status_{reply.status}")
    return _without("error", code or f"status_{reply.status}")


def _without(stop: Stop, why: str) -> Written:
    return Written(None, stop, 0, 0, why)


def _require_model(name: str, said: str, server: Server) -> None:
    """Raise RecipeError for an answer of another model: one of a longer name is a version of it, or its path."""
    if name not in said and said not in name:
        message = f"the server at {server.address} was asked for {name!r}, and {said[:100]!r} answered; name that one"
        raise RecipeError(message)


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < SEEDS else 0


def _word(value: object) -> str:
    """Return a code of a server as a word that is safe to store."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", str(value or ""))[:60]


def _whole(text: str) -> str:
    """Return a text with U+FFFD for halves of surrogate pairs, which JSON can say and UTF-8 cannot."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
