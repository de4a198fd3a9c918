"""Forms of all DAGs follow one rule: labels are words, and below each is the name that JSON has."""

import json
from typing import Any


def label_of(param: dict[str, Any]) -> tuple[str, str]:
    """Return the label of a field and the text below it."""
    written = param.get("__var", param)
    schema = written["schema"].get("__var", written["schema"])
    return schema["title"], written["description"]


def test_every_form_has_words_as_labels_and_says_the_names(parsed: dict[str, Any]) -> None:
    forms = {name: json.loads(dag["serialized"])["params"] for name, dag in parsed["dags"].items()}
    shown = [(dag, name, param) for dag, params in forms.items() for name, param in params]
    assert {dag for dag, _, _ in shown} == set(forms)
    for dag, name, param in shown:
        label, about = label_of(param)
        assert (dag, name, label) == (dag, name, label.replace("_", " ").strip())
        assert label[0].isupper(), (dag, name, label)
        assert about.endswith(f" (JSON: {name})"), (dag, name)
