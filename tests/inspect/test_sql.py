"""`refinery sql` answers queries over what a version's manifests name, checked, and reads nothing else."""

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_study.sql import table
from refinery_study.sql.querying import described
from refinery_study.sql.writing import SHOWN

from pipeline_tasks.api import sql
from pipeline_tasks.errors import ContractError, DigestMismatch, LookRefused, NoMemory, RecipeError
from pipeline_tasks.inspect.chosen import chosen_version, ordered_manifests
from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.inspect.views.column_types import type_of, united
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.ablation_log import AblatedArm, Ablation, RateDifference, record_ablation
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store import storage
from pipeline_tasks.store.access_log import looks
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests import erased_root
from tests.commands import Refinery
from tests.documents import documents
from tests.erased_root import ErasedRoot
from tests.refining import commit_parent, refined
from tests.small_root import DAYS, RECIPE, STAGES, SmallRoot


@pytest.fixture
def version(small_root: SmallRoot) -> Version:
    return version_log.current(small_root.root, RECIPE)


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path) -> str:
    return str(shutil.copytree(small_root.root, tmp_path / "root"))


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> ErasedRoot:
    """A root with personal data, near duplicates and a dataset."""
    return erased_root.make(tmp_path_factory.mktemp("people"))


def rows_of(root: str, query: str, number: int | str = 0, recipe: str = RECIPE) -> list[dict[str, Any]]:
    of = chosen_version(root, recipe, str(number)) if number else version_log.current(root, recipe)
    rows: list[dict[str, Any]] = table(root, of, query).to_pylist()
    return rows


def manifests(root: str, version: Version) -> dict[str, Manifest]:
    return ordered_manifests(root, version)


# --- Limits ---------------------------------------------------------------------------------------------------------

ENDLESS = "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b WHERE hash(a.range, b.range) = 1"
LARGE = "SELECT list(hash(range)) AS all_of_them FROM range(200000000)"  # one value: nothing of it can be spilled


def test_a_query_is_stopped_when_its_time_is_over(small_root: SmallRoot, version: Version, refinery: Refinery) -> None:
    with pytest.raises(RecipeError, match=r"stopped after 0\.5 seconds.*--seconds"):
        table(small_root.root, version, ENDLESS, seconds=0.5)
    done = refinery("sql", small_root.root, ENDLESS, "--seconds", "0.5")
    assert (done.returncode, "stopped after 0.5 seconds" in done.stderr) == (78, True)


def test_a_query_that_needs_more_memory_than_it_may_take_ends_with_the_way_out(small_root: SmallRoot) -> None:
    with pytest.raises(NoMemory, match="--memory"):
        sql(small_root.root, LARGE, memory=0.1)


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"seconds": float("nan")}, {"memory": 0}, {"memory": -1}])
def test_limits_that_are_none_are_refused(small_root: SmallRoot, version: Version, limits: dict[str, float]) -> None:
    with pytest.raises(RecipeError, match="give it more than 0 s"):
        table(small_root.root, version, "SELECT 1 AS one", **limits)


# --- Views ----------------------------------------------------------------------------------------------------------


def test_kept_rows_are_those_of_the_last_stage(small_root: SmallRoot, version: Version) -> None:
    stored = pa.Table.from_batches(read_shards(small_root.root, read_manifest(small_root.root, version.refined).shards))
    assert table(small_root.root, version, "SELECT * FROM kept").to_pylist() == stored.to_pylist()
    some = rows_of(
        small_root.root, "SELECT id, length(text) AS n FROM kept WHERE chars > 500 AND url LIKE '%1' ORDER BY id"
    )
    assert some == sorted(
        (
            {"id": row["id"], "n": len(row["text"])}
            for row in stored.to_pylist()
            if row["chars"] > 500 and row["url"].endswith("1")
        ),
        key=lambda row: row["id"],
    )


def test_rows_that_were_not_kept_are_those_of_all_stages(small_root: SmallRoot, version: Version) -> None:
    for view, part in (("rejects", "rejected"), ("quarantine", "quarantined")):
        answered = rows_of(
            small_root.root, f"SELECT stage, reason, count(*) AS rows FROM {view} GROUP BY ALL ORDER BY ALL"
        )
        tallies = {stage: getattr(manifest, part) for stage, manifest in manifests(small_root.root, version).items()}
        counts = [(stage, reason, rows) for stage, tally in tallies.items() for reason, rows in tally.items()]
        assert [tuple(row.values()) for row in answered] == sorted(counts)
        assert counts


def test_all_rows_of_a_view_are_counted_whichever_column_is_named(small_root: SmallRoot, version: Version) -> None:
    views = described(small_root.root, version)
    counts = {view: table(small_root.root, version, f"SELECT * FROM {view}").num_rows for view in views}
    known = manifests(small_root.root, version).values()
    assert counts["rejects"] == sum(sum(manifest.rejected.values()) for manifest in known) > 0
    assert counts["quarantine"] == sum(sum(manifest.quarantined.values()) for manifest in known) > 0
    for view, schema in views.items():
        grouped = (
            f'(SELECT sum(n) FROM (SELECT count(*) AS n FROM {view} GROUP BY "{name}"))' for name in schema.names
        )
        chosen = (f'len(ARRAY(SELECT "{name}" FROM {view}))' for name in schema.names)
        queries = ", ".join([f"(SELECT count(*) FROM {view})", *grouped, *chosen])
        [row] = rows_of(small_root.root, f"SELECT [{queries}]::BIGINT[] AS counts")
        assert [count or 0 for count in row["counts"]] == [counts[view]] * (1 + 2 * len(schema)), view


def test_stages_and_reasons_are_those_of_the_funnel(small_root: SmallRoot, version: Version) -> None:
    steps = funnel(small_root.root, version)
    answered = rows_of(small_root.root, "SELECT * FROM stages ORDER BY rank")
    assert [row["stage"] for row in answered] == list(STAGES)
    for row, step in zip(answered, steps, strict=True):
        assert (row["rows_in"], row["kept"], row["bytes"]) == (step["rows_in"], step["rows"], step["bytes"])
        assert row["rows_in"] == row["kept"] + row["rejected"] + row["quarantined"]
        assert (row["offspring_in"], row["generated"]) == (0, 0)
    reasons = rows_of(small_root.root, "SELECT stage, sum(rows) AS rows FROM reasons GROUP BY ALL")
    assert {row["stage"]: row["rows"] for row in reasons} == {
        row["stage"]: row["rejected"] + row["quarantined"] for row in answered if row["rejected"] + row["quarantined"]
    }


def test_verdicts_lineage_and_versions_are_tables(small_root: SmallRoot, version: Version) -> None:
    gates = rows_of(small_root.root, "SELECT gate, outcome, evaluated FROM verdicts ORDER BY gate")
    assert [row["gate"] for row in gates] == sorted(version.verdicts)
    assert all(row["evaluated"] for row in gates)
    parents = rows_of(small_root.root, "SELECT stage, parent_stage FROM lineage WHERE kind = 'made from'")
    assert {"stage": "extract", "parent_stage": "ingest"} in parents
    listed = rows_of(small_root.root, "SELECT number, state FROM versions ORDER BY number")
    assert [row["state"] for row in listed] == ["published", "published", "retracted"]


def test_what_trained_models_said_is_a_table(small_root: SmallRoot, tmp_path: Path) -> None:
    root = str(shutil.copytree(small_root.root, tmp_path / "root"))
    assert rows_of(root, "SELECT * FROM ablations") == []
    named = (f"{root}/corpus@1", f"{root}/corpus_en@2")
    arms = tuple(AblatedArm(dataset, dataset.rpartition("/")[2][:-2], 1, (), {}, "f", "d") for dataset in named)
    differences = (RateDifference(0.002, -0.05, -0.09, -0.01), RateDifference(0.001, -0.04, -0.06, -0.02))
    record_ablation(root, Ablation(arms, "15m", 8_000_000, 3, "h", differences, "better", 0.03, 780.5, "0.1.0"))
    query = "SELECT a, b, outcome, list_max(list_transform(differences, lambda d: d.high)) AS most FROM ablations"
    assert rows_of(root, query) == [{"a": "corpus@1", "b": "corpus_en@2", "outcome": "better", "most": -0.01}]


def test_another_version_is_a_schema(small_root: SmallRoot) -> None:
    query = "SELECT (SELECT count(*) FROM v1.kept) AS first, (SELECT count(*) FROM V2.Kept) AS second"
    counts = [version.documents for version in version_log.versions(small_root.root, RECIPE)]
    assert rows_of(small_root.root, query) == [{"first": counts[0], "second": counts[1]}]
    both = "SELECT count(*) AS n FROM v1.kept AS a JOIN main.kept AS b USING (id)"
    assert rows_of(small_root.root, both, DAYS[0]) == [{"n": counts[0]}]


def test_redactions_are_places_without_values(people: ErasedRoot, tmp_path: Path) -> None:
    root = published(tmp_path / "root", ["write to jane.roe@example.com at once", "nothing is here"])
    [place] = rows_of(root, "SELECT * FROM redactions", recipe="web")
    assert (place["kind"], place["start"], place["end"], place["action"]) == ("email", 9, 29, "redact")
    assert "jane" not in str(place)
    with pytest.raises(RecipeError, match="redactions"):
        rows_of(people.root, "SELECT * FROM redactions", recipe=erased_root.DATASET)


def test_redactions_of_rejected_documents_are_places_too(tmp_path: Path) -> None:
    root = published(tmp_path / "root", ["write to jane.roe@example.com at once"], kinds={"email": "drop"})
    assert rows_of(root, "SELECT count(*) AS n FROM kept", recipe="web") == [{"n": 0}]
    assert rows_of(root, "SELECT kind, start FROM redactions", recipe="web") == [{"kind": "email", "start": 9}]


def published(root: Path, texts: list[str], **params: Any) -> str:
    """Publish documents that `scrub_pii` alone has refined."""
    path, _ = refined(root, "scrub_pii", commit_parent(root, [documents(texts)]), params)
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {"scrub_pii": path}, "verdicts": {}}
    version_log.append(str(root), entry | {"prefix": "", "documents": 0, "tokens": 0, "sequences": 0})
    return str(root)


def test_a_dataset_has_the_documents_that_it_was_packed_of(people: ErasedRoot) -> None:
    built = version_log.current(people.root, erased_root.DATASET)
    answered = rows_of(
        people.root, "SELECT count(*) AS n, sum(n_tokens)::BIGINT AS t FROM kept", recipe=erased_root.DATASET
    )
    assert answered == [{"n": built.documents, "t": built.tokens}]


def test_a_version_without_documents_has_views_without_rows(tmp_path: Path, refinery: Refinery) -> None:
    root = published(tmp_path / "root", [])
    assert rows_of(root, "SELECT count(*) AS n, max(text) AS t FROM kept", recipe="web") == [{"n": 0, "t": None}]
    for view in ("rejects", "quarantine", "redactions"):
        assert rows_of(root, f"SELECT id, url FROM {view}", recipe="web") == []
    assert refinery("sql", root, "SELECT id FROM kept").stdout == "id\n0 rows\n"


def test_a_root_on_s3_gives_the_same(small_root: SmallRoot, s3_root: str) -> None:
    store = storage.connect(s3_root)
    for file in Path(small_root.root).rglob("*"):
        if file.is_file() and "ledger" not in file.name:
            store.create(str(file.relative_to(small_root.root)), file.read_bytes())
    for query in (
        "SELECT * FROM kept",
        "SELECT * FROM rejects WHERE reason LIKE '%duplicate%'",
        "SELECT * FROM stages",
    ):
        assert rows_of(s3_root, query) == rows_of(small_root.root, query)
        assert rows_of(s3_root, query)


# --- What is checked ------------------------------------------------------------------------------------------------


def damage(root: str, path: str) -> None:
    """Change the last bit of a byte in the middle of an object."""
    file = Path(root, path)
    body = bytearray(file.read_bytes())
    body[len(body) // 2] ^= 1
    file.chmod(0o644)
    file.write_bytes(body)


def test_a_changed_shard_is_refused_by_name_and_others_are_read(root: str) -> None:
    version = version_log.current(root, RECIPE)
    shard = read_manifest(root, version.refined).shards[0]
    damage(root, shard.path)
    with pytest.raises(DigestMismatch, match=shard.digest[:16]):
        rows_of(root, "SELECT count(*) FROM kept")
    assert rows_of(root, "SELECT count(*) AS n FROM stages") == [{"n": len(STAGES)}]
    assert rows_of(root, "SELECT id FROM v1.kept LIMIT 1")


@pytest.mark.parametrize("harm", ["damaged", "cut", "other", "gone"])
def test_a_shard_of_rejects_that_is_not_what_was_committed_is_refused_by_name(root: str, harm: str) -> None:
    manifest = manifests(root, version_log.current(root, RECIPE))["extract"]
    file = Path(root, manifest.rejects[0].path)
    match harm:
        case "damaged":
            damage(root, manifest.rejects[0].path)
        case "cut":
            file.write_bytes(file.read_bytes()[:-20])
        case "other":
            pq.write_table(pa.table({"reason": ["extract:planted"], "url": ["https://planted.example"]}), file)
        case "gone":
            file.unlink()
    with pytest.raises(ContractError, match=file.name):
        rows_of(root, "SELECT reason, url FROM rejects")


def test_a_file_that_no_manifest_names_is_not_seen(root: str) -> None:
    version = version_log.current(root, RECIPE)
    before = rows_of(root, "SELECT count(*) AS n FROM kept")
    shard = Path(root, read_manifest(root, version.refined).shards[0].path)
    shutil.copy(shard, shard.with_name("0" * 32 + ".parquet"))
    assert rows_of(root, "SELECT count(*) AS n FROM kept") == before


def test_documents_that_are_taken_down_or_erased_are_not_seen(
    people: ErasedRoot, tmp_path: Path, refinery: Refinery
) -> None:
    root = str(shutil.copytree(people.root, tmp_path / "root"))
    every = "SELECT url FROM kept UNION ALL SELECT url FROM rejects UNION ALL SELECT url FROM redactions"
    taken = erased_root.address(1, 6)
    of = ("--recipe", erased_root.RECIPE)
    before = [row["url"] for row in rows_of(root, every, recipe=erased_root.RECIPE)]
    assert taken in before
    assert refinery("takedown", root, "--url", taken, "--reason", "asked").returncode == 0
    done = refinery("sql", root, every, *of, "--format", "jsonl")
    assert sorted(json.loads(line)["url"] or "" for line in done.stdout.splitlines()) == sorted(
        url or "" for url in before if url != taken
    )
    assert "taken down" in done.stderr
    assert refinery("erase", root, "--by", "a steward").returncode == 0
    after = [row["url"] for row in rows_of(root, every, recipe=erased_root.RECIPE)]
    assert sorted(url or "" for url in after) == sorted(url or "" for url in before if url != taken)
    assert rows_of(root, "SELECT count(*) AS n FROM kept WHERE text = ''", recipe=erased_root.RECIPE) == [{"n": 0}]


# --- What is refused ------------------------------------------------------------------------------------------------

ATTACKS = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM READ_TEXT('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "{secret}"',
    "SELECT * FROM '{secret}'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT (SELECT content FROM read_text('/etc/passwd'))",
    "WITH a AS (SELECT * FROM parquet_scan('{secret}')) SELECT * FROM a",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('kept')",
    "SELECT * FROM json_execute_serialized_sql('{{}}')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM enable_logging()",
    "COPY (SELECT 1) TO '{out}'",
    "COPY kept TO '{out}'",
    "EXPORT DATABASE '{out}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "ATTACH '{out}' AS other",
    "ATTACH ':memory:' AS other",
    "SET enable_external_access = true",
    "SET memory_limit = '1TB'",
    "PRAGMA database_list",
    "CREATE TABLE t AS SELECT 1",
    "CREATE VIEW t AS SELECT 1",
    "DROP VIEW kept",
    "INSERT INTO kept VALUES (1)",
    "CALL pragma_version()",
    "SELECT 1; COPY (SELECT 1) TO '{out}'",
    "SELECT 1; SELECT 2",
    "SELECT * FROM options",
    "SELECT * FROM connection",
    "SELECT * FROM v99.kept",
    "SELECT * FROM other.kept",
    "SELECT nothing FROM kept",
    "SELECT * FROM nothing",
    "SELECT error('no')",
    "SELEC 1",
    "SELECT count(* FROM kept",
    "SELECT $1",
    "SELECT getenv('HOME')",
)


@pytest.mark.parametrize("query", ATTACKS)
def test_a_query_reads_views_and_does_nothing_else(
    query: str, small_root: SmallRoot, tmp_path: Path, refinery: Refinery
) -> None:
    secret, out = tmp_path / "secret.parquet", tmp_path / "out.csv"
    pq.write_table(pa.table({"word": ["hidden words"]}), secret)
    done = refinery("sql", small_root.root, query.format(secret=secret, out=out))
    assert (done.returncode, done.stdout) == (RecipeError.exit_code, "")
    assert len(done.stderr.splitlines()) == 1
    assert "hidden words" not in done.stderr
    assert "root:x:" not in done.stderr
    assert [file.name for file in tmp_path.iterdir() if file != Path(small_root.root)] == [secret.name]


def test_names_with_quotes_are_names(small_root: SmallRoot, refinery: Refinery) -> None:
    assert rows_of(small_root.root, 'SELECT count(*) AS "o\'clock ""n""" FROM kept')[0].popitem()[0] == 'o\'clock "n"'
    for query in ('SELECT * FROM "v1"" kept"', 'SELECT * FROM "v1""; DROP".kept', 'SELECT * FROM "ke\'pt"'):
        assert refinery("sql", small_root.root, query).returncode == RecipeError.exit_code


def test_a_root_without_versions_is_refused(tmp_path: Path, refinery: Refinery) -> None:
    (tmp_path / "root").mkdir()
    done = refinery("sql", tmp_path / "root", "SELECT 1")
    assert (done.returncode, done.stdout) == (RecipeError.exit_code, "")


# --- Looks ----------------------------------------------------------------------------------------------------------


def test_a_query_of_documents_is_a_look_and_a_query_of_counts_is_none(
    root: str, refinery: Refinery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFINERY_ACCESS_LOG", "purposes")
    assert refinery("sql", root, "SELECT * FROM stages").returncode == 0
    assert list(looks(root)) == []
    refused = refinery("sql", root, "WITH a AS (SELECT id FROM V1.Kept) SELECT * FROM a")
    assert (refused.returncode, refused.stdout) == (LookRefused.exit_code, "")
    assert refinery("sql", root, "SELECT id FROM kept", "--purpose", "claim 7").returncode == 0
    [look] = looks(root)
    ids = [row["id"] for row in ask_with_purpose(root, "SELECT id FROM kept")]
    assert (look.what, look.rows, look.documents, look.purpose) == ("sql", len(ids), tuple(ids), "claim 7")


def ask_with_purpose(root: str, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table(root, version_log.current(root, RECIPE), query, "a test").to_pylist()
    return rows


def test_words_of_a_document_in_an_error_are_a_look(
    root: str, refinery: Refinery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFINERY_ACCESS_LOG", "purposes")
    query = "SELECT text::INT FROM kept"
    refused = refinery("sql", root, query)
    assert "word2" not in refused.stderr.partition("/root are shown")[2]
    assert "shown for a purpose" in refused.stderr
    said = refinery("sql", root, query, "--purpose", "claim 7")
    assert (said.returncode, len(list(looks(root)))) == (RecipeError.exit_code, 1)
    assert len(said.stderr) < 500


# --- Words and files ------------------------------------------------------------------------------------------------


def test_the_query_may_come_from_a_file_or_stdin_and_follow_options(
    small_root: SmallRoot, refinery: Refinery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT count(*) AS n FROM stages -- a comment"
    (tmp_path / "q.sql").write_text(query)
    shown = f"n\n{len(STAGES)}\n1 row\n"
    assert refinery("sql", small_root.root, "--file", tmp_path / "q.sql").stdout == shown
    for words in ((small_root.root, "-"), (small_root.root, "--file", "-")):
        monkeypatch.setattr("sys.stdin", io.StringIO(query))
        assert refinery("sql", *words).stdout == shown
    assert refinery("sql", small_root.root, "--version", "1", query).stdout == shown
    monkeypatch.setenv("REFINERY_ROOT", small_root.root)
    assert refinery("sql", query).stdout == shown
    for words in ((query, "--file", tmp_path / "q.sql"), ("--file", tmp_path / "none.sql")):
        assert refinery("sql", small_root.root, *words).returncode == RecipeError.exit_code


def test_without_a_query_the_views_are_listed(small_root: SmallRoot, refinery: Refinery) -> None:
    lines = refinery("sql", small_root.root).stdout.splitlines()
    views = ["kept", "rejects", "quarantine", "stages", "reasons", "verdicts", "lineage", "versions", "ablations"]
    assert [line.split()[0] for line in lines] == views
    assert "text" in lines[0]
    shown = rows_of(small_root.root, "SHOW TABLES")
    assert [row["name"] for row in shown] == sorted(views)


def test_formats_have_the_same_rows(small_root: SmallRoot, refinery: Refinery, tmp_path: Path) -> None:
    query = "SELECT id, chars, [chars] AS list, id FROM kept ORDER BY id"
    rows = rows_of(small_root.root, query)
    assert list(rows[0]) == ["id", "chars", "list", "id_2"]
    for name in ("rows.parquet", "rows.jsonl", "rows.csv", "rows"):
        assert refinery("sql", small_root.root, query, "--to", tmp_path / name).returncode == 0
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == rows
    assert [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == rows
    header, first, *rest = (tmp_path / "rows.csv").read_text().splitlines()
    assert (header, len(rest) + 1) == ("id,chars,list,id_2", len(rows))
    assert first == f"{rows[0]['id']},{rows[0]['chars']},[{rows[0]['chars']}],{rows[0]['id']}"
    assert (tmp_path / "rows").read_text().splitlines()[-1] == f"{len(rows)} rows"
    printed = refinery("sql", small_root.root, query, "--json").stdout
    assert [json.loads(line) for line in printed.splitlines()] == rows
    for words in (("--to", tmp_path / "rows.csv"), ("--format", "parquet"), ("--to", Path(small_root.root, "x.csv"))):
        assert refinery("sql", small_root.root, query, *words).returncode == RecipeError.exit_code


def test_a_terminal_gets_no_command_from_a_text(small_root: SmallRoot, refinery: Refinery) -> None:
    printed = refinery("sql", small_root.root, "SELECT chr(27) || '[2J' || chr(10) || 'x' AS t").stdout
    assert printed == "t\n[2J x\n1 row\n"


KINDS = st.recursive(
    st.sampled_from(
        [pa.string(), pa.large_string(), pa.int64(), pa.float64(), pa.bool_(), pa.large_binary(), pa.float32()]
    ),
    lambda kinds: st.one_of(
        kinds.map(pa.list_),
        kinds.map(lambda kind: pa.list_(kind, 3)),
        st.lists(kinds, min_size=1, max_size=3).map(
            lambda many: pa.struct([(f"f_{at}", kind) for at, kind in enumerate(many)])
        ),
    ),
    max_leaves=6,
)


@given(KINDS)
def test_a_type_is_read_from_its_name(kind: pa.DataType) -> None:
    assert type_of(str(kind)) == kind


@pytest.mark.parametrize("kind", ["", "list", "list<item: >", "struct<a: int64", "struct<a int64>", "no such type"])
def test_no_type_is_refused(kind: str) -> None:
    with pytest.raises(ContractError):
        type_of(kind)


def test_a_column_of_two_widths_has_the_wider_type() -> None:
    narrow, wide = pa.schema([("n", pa.int32()), ("text", pa.string())]), pa.schema([("n", pa.int64())])
    assert united([narrow, wide]) == pa.schema([("n", pa.int64()), ("text", pa.string())])


def test_a_long_table_says_how_many_rows_it_does_not_show(small_root: SmallRoot, refinery: Refinery) -> None:
    lines = refinery("sql", small_root.root, "SELECT * FROM range(250)").stdout.splitlines()
    assert len(lines) == 1 + SHOWN + 1
    assert re.findall(r"\d+", lines[-1])[:2] == ["250", str(SHOWN)]
