"""Asks a question from Python."""

from argparse import Namespace

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.known import entry_of, name_in, questions
from pipeline_tasks.ask.question import Role, params_of, question_of, read_params
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.nearest import nearest
from pipeline_tasks.store.storage import require_root


def answered(name: str, root: str, values: tuple[object, ...], params: dict[str, object], purpose: str) -> Answer:
    """Return the answer to a question; it is logged as a look where it shows texts, and looks at the root are."""
    entry = entry_of(name_in(name.split())[0])
    if entry is None or not entry.is_question:
        known = [each for each, entry in questions().items() if entry.is_question]
        message = f"there is no question {name!r}{nearest(name, known)}; questions are: {', '.join(known)}"
        raise RecipeError(message)
    require_root(root)
    question = question_of(entry)
    named = [param.name for param in params_of(question)]
    placed = _by_name(name, named, values)
    if twice := sorted({*placed} & {*params}):
        message = f"{name}: {', '.join(twice)} is given twice, by its place and by its name"
        raise RecipeError(message)
    given = {**placed, **params}
    answer = question.answer(read_params(question, given, root, Role.STEWARD))
    if entry.shows:
        options = Namespace(**{**given, "root": root, "command": name, "purpose": purpose})
        looked(options, answer.rows, answer.documents, answer.of)
    return answer


def _by_name(name: str, named: list[str], values: tuple[object, ...]) -> dict[str, object]:
    """Return values without a name by that of their param; RecipeError for more values than params."""
    if len(values) > len(named):
        message = f"{name} has {counted(len(named), 'param')} ({', '.join(named)}), not {len(values)}"
        raise RecipeError(message)
    return dict(zip(named, values, strict=False))
