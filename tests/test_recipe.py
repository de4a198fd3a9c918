"""Recipes are checked before anything runs, and a refusal names the key, the place and the nearest known word."""

import math
import os
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import (
    choosing_stages,
    has_param,
    has_sequences,
    plans_mixture,
    repeats,
    stage_card,
    stage_that,
    tokenizes,
)
from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import (
    BUILDS,
    OWN_RECIPES,
    ErrorBudget,
    Recipe,
    Resources,
    RunSettings,
    default_build,
    load_build,
    load_recipe,
    parse_recipe,
    recipe_names,
    recipe_path,
)
from pipeline_tasks.stage import FilePath, Stage
from pipeline_tasks.stages import NAMES
from pipeline_tasks.stages.filter_quality import FINEWEB

MINIMAL: dict[str, Any] = {"stages": {"toy_map": {"every": 4}, "toy_group": {}}}

pytestmark = pytest.mark.usefixtures("toys")


def test_resources_are_those_of_their_stage() -> None:
    recipe = parse_recipe(MINIMAL | {"run": {"resources": {"toy_map": {"cores": 2, "memory": 1.5}}}}, "toys.yaml")
    assert [step.resources for step in recipe.steps] == [Resources(cores=2, memory=1.5), Resources()]


def test_a_recipe_keeps_its_order_and_values() -> None:
    recipe = parse_recipe(
        MINIMAL | {"title": "Toys", "run": {"partitions": 2, "engines": {"toy_group": "spark"}}}, "toys.yaml"
    )
    assert (recipe.name, recipe.title, recipe.partitions) == ("toys", "Toys", 2)
    assert [(step.stage, step.params, step.engine) for step in recipe.steps] == [
        ("toy_map", {"every": 4}, "local"),
        ("toy_group", {}, "spark"),
    ]
    assert recipe.step("toy_group").engine == "spark"
    assert recipe.step("toy_group").resources == Resources()
    with pytest.raises(RecipeError, match=r"toys.*pack.*toy_map, toy_group"):
        recipe.step("pack")


@pytest.mark.parametrize(
    ("recipe", "build"),
    [("web", "corpus"), ("demo", "demo_corpus"), ("web_en", "web_en_corpus"), ("mine", "mine_corpus")],
)
def test_every_recipe_has_a_build_that_its_runs_end_with(recipe: str, build: str) -> None:
    shipped = default_build(recipe)
    assert (shipped.name, shipped.versions and shipped.versions.recipe) == (build, recipe)
    assert [step.stage for step in shipped.steps] == ["tokenize", "select", "mix", "shuffle", "takedown", "pack"]


PARAMS: Mapping[Callable[[str], bool], tuple[str, ...]] = {
    tokenizes: ("tokenizer", "eos", "bos", "backend"),
    plans_mixture: ("by", "bands", "weights", "tokens", "epochs", "max_epochs", "budget_tokens", "quality"),
    repeats: (),
    has_sequences: ("length", "pad_id", "method"),
}
"""What builds ask of the cards of stages, and the params that they write or read of a stage that is it."""


@pytest.mark.parametrize("asked", PARAMS, ids=["tokenizes", "plans", "repeats", "packs"])
def test_a_stage_that_builds_ask_for_has_the_params_that_they_know(asked: Callable[[str], bool]) -> None:
    having = [name for name in NAMES if asked(name)]
    assert having
    assert not asked("of_another_release")
    assert [(name, param) for name in having for param in PARAMS[asked] if not has_param(name, param)] == []


@pytest.mark.parametrize("name", recipe_names(BUILDS))
def test_a_build_chooses_documents_by_their_tokens_then_moves_and_packs_them(name: str) -> None:
    stages = [step.stage for step in load_build(name).steps]
    assert [sum(map(asked, stages)) for asked in PARAMS] == [1, 1, 1, 1]
    choosing = choosing_stages(stages)
    assert [bool(stage_that(asked, choosing)) for asked in PARAMS] == [True, True, False, False]
    assert stages[len(choosing)] == stage_that(repeats, stages)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"stagse": {}}, ("'stagse'", "'stages'")),
        ({"stages": {"toy_mpa": {}}}, ("stages:", "'toy_mpa'", "'toy_map'")),
        ({"stages": {"toy_map": {"evry": 1}}}, ("toy_map:", "'evry'", "'every'")),
        ({"stages": {"toy_map": {"every": "often"}}}, ("toy_map: every", "'often'")),
        ({"stages": {"toy_map": {"every": True}}}, ("toy_map: every", "True")),
        ({"stages": {"toy_map": {"every": 1.5}}}, ("toy_map: every", "1.5")),
        ({"stages": {"toy_map": [1]}}, ("toy_map", "[1]")),
        ({"stages": {"toy_bad": {}}}, ("toy_bad: how",)),
        ({"stages": {}}, ("stages: {ingest: {}}",)),
        ({"stages": None}, ("stages", "write at least")),
        ({"run": {"partition": 3}}, ("run:", "'partition'", "'partitions'")),
        ({"run": {"partitions": -1}}, ("run: partitions", "0", "1,024", "-1")),
        ({"run": {"partitions": "many"}}, ("run: partitions", "'many'")),
        ({"run": {"engines": {"toy_map": "spork"}}}, ("engines: toy_map", "`local`", "`ray`", "'spork'", "'spark'")),
        ({"run": {"engines": {"toy_mop": "ray"}}}, ("run: engines:", "'toy_mop'", "'toy_map'")),
        ({"run": {"engines": {"verfy": "ray"}}}, ("run: engines:", "'verfy'", "'verify'")),
        ({"run": {"engines": {"verify": "spork"}}}, ("engines: verify", "'spork'", "'spark'")),
        ({"run": {"engines": {"publish": "local"}}}, ("run: engines: publish", "build", "`versions`")),
        ({"run": {"engines": {"export": "local"}}}, ("run: engines: export", "build", "`versions`")),
        ({"run": {"resources": {"toy_mop": {}}}}, ("run: resources:", "'toy_mop'", "'toy_map'")),
        ({"run": {"resources": {"toy_map": {"cpus": 2}}}}, ("resources: toy_map:", "'cpus'", "'gpus'")),
        ({"run": {"resources": {"toy_map": {"memory": "4g"}}}}, ("resources: toy_map: memory", "65,536", "'4g'")),
        ({"run": {"resources": {"toy_map": {"cores": 1.5}}}}, ("resources: toy_map: cores", "1.5")),
        ({"run": {"resources": {"toy_map": {"gpus": 1.5}}}}, ("resources: toy_map: gpus", "1.5")),
        ({"run": {"error_budget": {"row": 1}}}, ("error_budget:", "'row'", "'rows'")),
        ({"run": {"error_budget": {"share": "lots"}}}, ("error_budget: share", "'lots'")),
        ({"fields": {"txt": "body"}}, ("fields:", "'txt'", "'text'")),
        ({"fields": {"text": ""}}, ("fields: text", "name of a field", "''")),
        ({"fields": ["body"]}, ("fields", "['body']")),
        ({"gates": {"toy_mop": {}}}, ("gates:", "'toy_mop'", "'toy_map'")),
        ({"gates": {"toy_map": 3}}, ("gates: toy_map", "3")),
    ],
)
def test_a_wrong_recipe_is_refused_with_key_and_nearest_word(change: dict[str, Any], named: tuple[str, ...]) -> None:
    with pytest.raises(RecipeError, match=in_order("r.yaml", *named)):
        parse_recipe(MINIMAL | change, "r.yaml")


def in_order(*names: str) -> str:
    """Return a pattern of names that a message has in this order, whatever is between them."""
    return "(?s)" + ".*".join(map(re.escape, names))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["stages", "run", "gates", "toy_map", "x"]) | st.integers(), inner, max_size=3
            )
        ),
        max_leaves=10,
    )
)
def test_random_yaml_is_refused_with_our_words(raw: object) -> None:
    try:
        assert parse_recipe(raw, "r.yaml").steps
    except RecipeError as error:
        assert str(error)  # noqa: PT017 -- either outcome is right, and each is checked


BAD_FILES: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "unclosed": (b"stages: [unclosed", ("line 1",)),
    "empty": (b"", ("None",)),
    "list": (b"- stages", ("['stages']",)),
    "text": (b"stages", ("'stages'",)),
    "utf-16": ("stages: {toy_map: }".encode("utf-16"), ("UTF-8", "byte 1")),
    "utf-16 without a mark": ("stages: {toy_map: }".encode("utf-16-le"), ("line 1", r"'\x00'")),
    "latin-1": ("title: caf\xe9".encode("latin-1"), ("UTF-8", "byte 11")),
    "nul": (b"title: a\0b", ("line 1", r"'\x00'")),
    "escaped nul": (b'title: "a\\0b"', ("line 1", r"'a\x00b'")),
    "half a pair": (b'title: "\\ud800"', ("line 1", r"'\ud800'")),
    "random": (bytes(range(256)), ("UTF-8",)),
    "duplicate": (b"stages:\n  toy_map: {every: 2}\n  toy_map: {every: 3}\n", ("line 3", "'toy_map'", "line 2")),
    "endless": (b"stages: &s {toy_map: *s}\n", ("line 1", "16")),
    "nested aliases": (b"".join(b"%c: &%c [*%c]\n" % (n + 1, n + 1, n) for n in range(97, 120)), ()),
    "tag": (b"stages: !!python/object/apply:os.system [ls]", ("line 1", "os.system")),
    "deep": (b"[" * 50_000, ("16",)),
    "wide": (b"a: " + b"x" * (1 << 20), ("131,072",)),
    "digits": (b"stages: {toy_map: {every: " + b"9" * 9_000 + b"}}", ("YAML",)),
    "hexadecimal": (b"stages: {toy_map: }\nrun: {partitions: 0x" + b"f" * 9_000 + b"}", ("partitions", "36000")),
    "date": (b"title: 2026-13-45", ("YAML",)),
    "documents": (b"stages: {}\n---\nstages: {}\n", ("YAML",)),
    "key": (b"{[1]: 2}", ("YAML",)),
    "path": (b"name: ../../x\nstages: {toy_map: }", ("name", "'../../x'")),
    "number": (b"name: 7\nstages: {toy_map: }", ("name", "7")),
}
"""Contents, and what is named of each after its path: the place in it, the key or the value."""

LAUGHS = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n".encode() for n in range(9)
)


@pytest.mark.parametrize("kind", [*BAD_FILES, "laughs"])
def test_a_file_that_is_no_recipe_is_refused_with_its_path(tmp_path: Path, kind: str) -> None:
    content, named = BAD_FILES.get(kind, (LAUGHS, ("line 5", "50,000")))
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(RecipeError, match=in_order(str(path), *named)) as refusal:
        load_recipe(str(path))
    assert len(str(refusal.value)) < 600


def test_what_is_no_file_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "nothing")
    for path in (tmp_path / "folder.yaml", tmp_path / "pipe.yaml", tmp_path / "dangling.yaml"):
        with pytest.raises(RecipeError, match=re.escape(str(path))):
            load_recipe(str(path))
    for name in ("x" * 5_000, "a\0b", "a\0b.yaml", "x" * 5_000 + ".yaml", "../../x", "", "/"):
        with pytest.raises(RecipeError, match=in_order(f"'{name[:100]}".replace("\0", r"\x00"), *recipe_names())):
            load_recipe(name)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of recipes of one's own."""
    for path, text in {
        "ours.yaml": "stages: {ingest: {}, extract: {}}\n",
        "build/mix.yaml": "versions: {recipe: ours}\nstages: {tokenize: {}, select: {}, shuffle: {}, pack: {}}\n",
        "sources/feed.yaml": "source: {folder: {place: /crawls}}\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setenv(OWN_RECIPES, str(tmp_path))
    return tmp_path


def test_recipes_of_ones_own_folder_are_known_by_name(own: Path) -> None:
    """Each name is a DAG: `test_every_recipe_is_a_dag`."""
    assert {"ours", "web"} <= {*recipe_names()}
    assert {"mix", "corpus"} <= {*recipe_names(BUILDS)}
    assert recipe_path("ours") == own / "ours.yaml"
    assert load_recipe("ours").name == "ours"
    assert default_build("ours").name == "mix"
    with pytest.raises(RecipeError, match=r"did you mean 'ours'"):
        load_recipe("our")


def test_a_recipe_of_ones_own_takes_no_name_of_ours(own: Path) -> None:
    (own / "web.yaml").write_text("stages: {ingest: {}, extract: {}}\n")
    with pytest.raises(RecipeError, match=re.escape(f"{own}/web.yaml has the name of a recipe that ships")):
        recipe_names()
    assert load_recipe(str(own / "web.yaml")).name == "web"


def test_a_folder_of_recipes_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_RECIPES, "/nowhere/recipes")
    with pytest.raises(RecipeError, match=r"REFINERY_RECIPES names '/nowhere/recipes', which is no folder"):
        recipe_names()


def test_a_path_of_something_else_is_named_as_that(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(RecipeError, match=in_order(f"'{path}'", *recipe_names())):
            load_recipe(str(path))


@pytest.mark.parametrize(("number", "kind"), [("010", "octal"), ("-0_7", "octal"), ("1:30", "base 60")])
def test_a_number_that_yaml_reads_as_another_is_refused(number: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"stages:\n  toy_map: {{every: {number}}}\n")
    with pytest.raises(RecipeError, match=in_order(f"{path}: line 2: {number}", kind)):
        load_recipe(str(path))
    path.write_text(f"title: '{number}'\nstages: {{toy_map: {{every: 0}}}}\n")
    assert load_recipe(str(path)).title == number


@pytest.mark.parametrize("path", ["./models/tokens", "/models/tokens.bpe", "models/big/tokens@main", "~/tokens"])
def test_a_tokenizer_of_another_suffix_is_known_as_a_path(path: str) -> None:
    with pytest.raises(RecipeError, match=in_order("tokenize.tokenizer", f"'{path}'", ".json", ".model")):
        bind(stage_card("tokenize"), {"tokenizer": path})


def test_an_alias_is_what_it_stands_for(tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text("stages: {toy_map: &p {every: 2}, toy_group: {<<: *p}}")
    with pytest.raises(RecipeError, match=r"twice.yaml: toy_group: .*'every'"):
        load_recipe("twice", tmp_path)


def test_a_byte_order_mark_is_no_part_of_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "marked.yaml").write_bytes("\ufeffstages: {toy_map: }".encode())
    assert [step.stage for step in load_recipe("marked", tmp_path).steps] == ["toy_map"]


def test_a_recipe_is_found_by_name_or_path(tmp_path: Path) -> None:
    (tmp_path / "toys.yaml").write_text("stages:\n  toy_map:\n")
    assert load_recipe("toys", tmp_path).name == load_recipe(str(tmp_path / "toys.yaml")).name == "toys"
    with pytest.raises(RecipeError, match=r"'toy'.*'toys'.*: toys"):
        load_recipe("toy", tmp_path)


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_we_ship_is_sound(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.title
    stages = [step.stage for step in recipe.steps]
    assert stages == [stage for stage in NAMES if stage in stages]


QUALITY_POLICY = {"dedup_minhash": {"policy": ["quality", "lowest_id"]}}


@pytest.mark.parametrize(
    ("stages", "named"),
    [
        (QUALITY_POLICY, "dedup_minhash .*'score'.* score_quality .*dedup_minhash"),
        (QUALITY_POLICY | {"score_quality": {}}, "dedup_minhash .*'score'.* score_quality .*dedup_minhash"),
        (
            {"score_quality": {}, "dedup_minhash": {"policy": ["quality"], "quality": "stars"}},
            "dedup_minhash .*'stars'",
        ),
    ],
)
def test_a_column_that_no_earlier_stage_writes_is_refused(stages: dict[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        parse_recipe({"stages": stages}, "r.yaml")


@pytest.mark.parametrize("column", ["score", "language_score"])
def test_scores_may_decide_on_near_duplicates(column: str) -> None:
    scored = {"filter_language": {}, "score_quality": {}}
    near = {"dedup_minhash": {"policy": ["quality", "lowest_id"], "quality": column}}
    recipe = parse_recipe({"stages": scored | near}, "r.yaml")
    assert [step.stage for step in recipe.steps][-1] == "dedup_minhash"


def test_the_default_recipe_judges_each_language_by_bounds_of_its_own() -> None:
    params = bind(stage_card("filter_quality"), load_recipe("web").step("filter_quality").params)
    assert (params.packs, params.edit) == ("web", False)


def test_fineweb_en_counts_words_and_near_duplicates_as_fineweb() -> None:
    recipe = load_recipe("fineweb_en")
    quality = bind(stage_card("filter_quality"), recipe.step("filter_quality").params)
    assert (quality.profiles, quality.words, quality.packs, quality.limits) == (FINEWEB, "spacy", "none", {})
    assert quality.edit
    near = bind(stage_card("dedup_minhash"), recipe.step("dedup_minhash").params)
    assert (near.ngram, near.bands, near.rows, near.threshold) == (5, 14, 8, 0)


# --- Params --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Params:
    """Every kind of parameter that a stage may have."""

    ratio: float = 0.5
    words: tuple[str, ...] = ()
    bounds: Mapping[str, float] | None = None
    mode: Literal["fast", "slow"] = "fast"
    model: FilePath = FilePath("")  # noqa: RUF009 -- a NewType is its argument
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.ratio > 1:
            message = "ratio is at most 1"
            raise ValueError(message)


CARD: Stage[Any] = Stage("kinds", lambda shards, *_: shards, Params, pa.schema([]), pa.schema([]), 1, splits=True)


def test_values_become_what_the_params_want() -> None:
    written = {"ratio": 1, "words": ["a", "b"], "bounds": {"en": 1}, "mode": "slow", "model": "m.bin", "limit": 3}
    assert bind(CARD, written) == Params(1.0, ("a", "b"), {"en": 1.0}, "slow", FilePath("m.bin"), 3)
    assert isinstance(bind(CARD, written).ratio, float)
    assert bind(CARD, {"limit": None}) == Params()


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ({"ratio": 2}, "kinds: ratio .*1"),
        ({"ratio": "x"}, "kinds: ratio .*'x'"),
        ({"words": "abc"}, "kinds: words .*'abc'"),
        ({"words": [1]}, "kinds: words .*1"),
        ({"bounds": {"en": "x"}}, "kinds: bounds: en .*'x'"),
        ({"mode": "fats"}, "kinds: mode .*`fast`.*`slow`.*'fats'.*'fast'"),
        ({"model": 3}, "kinds: model .*3"),
        ({"limit": "x"}, "kinds: limit .*'x'"),
    ],
)
def test_a_value_of_another_kind_is_refused(written: dict[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        bind(CARD, written)


# --- Ranges -------------------------------------------------------------------------------------------------------------


def numbers(kind: Any, where: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Yield each number that an annotation admits, as (place, type, whether it has a range)."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        ranged = any(isinstance(extra, Range) for extra in args[1:])
        yield from ((place, inner, ranged) for place, inner, _ in numbers(args[0], where))
    elif origin in (types.UnionType, typing.Union, tuple, Mapping):
        for inner in args:
            yield from numbers(inner, where)
    elif is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        for entry in fields(kind):
            yield from numbers(hints[entry.name], f"{where}.{entry.name}")
            for key, group in entry.metadata.get("keys", {}).items():
                yield from numbers(group, f"{where}.{key}")
    elif kind in (int, float):
        yield where, kind, False


KINDS = [*(stage_card(name).params for name in NAMES), Recipe, RunSettings, ErrorBudget]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__module__ + "." + kind.__name__)
def test_every_number_of_a_recipe_has_a_range(kind: Any) -> None:
    assert [place for place, _, ranged in numbers(kind, kind.__name__) if not ranged] == []


def test_the_walk_finds_a_number_without_a_range() -> None:
    assert [place for place, _, ranged in numbers(Params) if not ranged] == [".ratio", ".bounds", ".limit"]


SENSELESS = [math.nan, -math.inf, -3, True, "3", 10**400, None, [], {}]


@pytest.mark.parametrize(
    ("stage", "param"),
    [(name, entry.name) for name in NAMES for entry in fields(stage_card(name).params)
     if list(numbers(typing.get_type_hints(stage_card(name).params, include_extras=True)[entry.name]))],
)  # fmt: skip
def test_no_number_of_a_stage_may_be_senseless(stage: str, param: str) -> None:
    card = stage_card(stage)
    hints = typing.get_type_hints(card.params, include_extras=True)
    hint = hints[param]
    required = {
        entry.name: "file" if hints[entry.name] is FilePath else {}
        for entry in fields(card.params)
        if entry.default is MISSING and entry.default_factory is MISSING
    }
    refused = 0
    for value in SENSELESS:
        written = {"en": value} if str(hint).startswith("collections.abc.Mapping") else value
        written = [value] if str(hint).startswith("tuple") else written
        if written in ([], {}) or (param in ("train", "quality") and not value):
            continue
        with pytest.raises(RecipeError, match=f"{stage}: {param}"):
            bind(card, {**required, param: written})
        refused += 1
    assert refused >= 6


@pytest.mark.parametrize(
    ("stage", "written"),
    [
        ("filter_language", {"threshold": 2}),
        ("filter_language", {"threshold": 7}),
        ("dedup_minhash", {"threshold": 2}),
        ("dedup_minhash", {"buckets": -1}),
        ("dedup_minhash", {"bands": 0}),
        ("dedup_minhash", {"bands": 10**12}),
        ("dedup_minhash", {"bands": 1000, "rows": 1000}),
        ("dedup_exact", {"buckets": 10**9}),
        ("shuffle", {"buckets": -1}),
        ("pack", {"length": 0}),
        ("pack", {"length": 10**12}),
        ("extract", {"seconds": 0}),
        ("extract", {"memory": 0}),
        ("score_quality", {"minimum": 1.5}),
        ("mix", {"weights": {"en": math.inf}}),
        ("ingest", {"keep_status": [7]}),
        ("filter_quality", {"gopher_quality": {"max_bullet_lines_ratio": 7}}),
        ("filter_quality", {"gopher_quality": {"min_doc_words": math.nan}}),
    ],
)
def test_a_number_out_of_its_range_is_refused(stage: str, written: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match=rf"{stage}: .*{next(iter(written))}"):
        bind(stage_card(stage), written)


def test_a_secret_is_in_no_message() -> None:
    with pytest.raises(RecipeError) as refusal:
        bind(stage_card("scrub_pii"), {"key": ["hunter2"]})
    assert "hunter2" not in str(refusal.value)


def test_stages_of_generated_documents_have_the_params_of_those_that_they_follow() -> None:
    prompts = {"short": {"prompt": "summary"}}
    stages: dict[str, Any] = {
        "ingest": {},
        "extract": {},
        "scrub_pii": {"action": "drop", "kinds": {"email": "redact"}},
        "decontaminate": {},
        "rephrase": {"generator": {"kind": "endpoint", "name": "m"}, "prompts": prompts},
        "filter_generated": {},
        "scrub_generated": {"action": "redact"},
        "decontaminate_generated": {},
    }
    params = {step.stage: step.params for step in parse_recipe({"stages": stages}, "ours").steps}
    assert params["filter_generated"]["prompts"] == prompts
    assert params["scrub_generated"] == {"action": "redact", "kinds": {"email": "redact"}}
    assert params["decontaminate_generated"] == params["decontaminate"]
