"""What is wrong with a command is said before anything heavy is imported: whoever mistypes a path waits for no library."""

import json
from pathlib import Path

import pytest

from pipeline_tasks.errors import RecipeError
from tests.chain import command
from tests.commands import Refinery
from tests.small_root import SmallRoot

HEAVY = ("airflow", "great_expectations", "numba", "pandas", "pyspark", "ray")

REFUSED = """
import json, sys
from pipeline_tasks.cli.main import main
code = main(sys.argv[2:])
print(json.dumps([code, sorted(set(json.loads(sys.argv[1])) & set(sys.modules))]))
"""


@pytest.mark.parametrize("wrong", ["input", "recipe", "output", "override", "text-field"])
def test_a_wrong_word_is_refused_before_anything_heavy_is_imported(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "a.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "file").touch()
    words = {
        "input": str(tmp_path / "crawl"),
        "output": str(tmp_path / "root"),
        "recipe": "web",
        "override": "extract=a",
        "text-field": "text",
    }
    words |= {
        wrong: {
            "input": str(tmp_path / "crowl"),
            "output": str(tmp_path / "file"),
            "recipe": "wbe",
            "override": "extrct=a",
            "text-field": "body",
        }[wrong]
    }
    run = command(
        "-c", REFUSED, json.dumps(HEAVY), "run", *(word for name in words for word in (f"--{name}", words[name]))
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [RecipeError.exit_code, []]
    assert words[wrong].partition("=")[0] in run.stderr


@pytest.mark.parametrize("mistyped", ["s3//bucket/x", "s3:/bucket/x", "S3://bucket/x"])
def test_a_mistyped_bucket_is_named_as_it_is_meant(mistyped: str, refinery: Refinery, tmp_path: Path) -> None:
    for words in (("--input", mistyped, tmp_path / "root"), ("--input", tmp_path, mistyped)):
        done = refinery("run", *words)
        assert (done.returncode, "did you mean s3://bucket/x?" in done.stderr) == (78, True), done.stderr


@pytest.mark.parametrize(
    ("option", "meant"), [("--partitons=2", "--partitions"), ("--recepie=a", "--recipe"), ("--what", "")]
)
def test_an_option_that_is_none_names_the_nearest(option: str, meant: str, refinery: Refinery) -> None:
    done = refinery("run", "root", "--input", "crawl", option)
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith(f"(did you mean {meant}?)" if meant else f"unrecognized arguments: {option}")


def test_an_option_that_is_none_prints_the_usage_of_its_command(refinery: Refinery) -> None:
    """It was that of all commands, which says of no option what there is instead."""
    for words in (("why", "page", "root", "--recipe", "web"), ("rejects", "--quarantined")):
        done = refinery(*words)
        assert done.returncode == 2
        assert done.stderr.startswith(f"usage: refinery {words[0]} [-h]"), done.stderr
        assert f"refinery {words[0]}: error: unrecognized arguments: --" in done.stderr


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("why",), "WHAT"),
        (("document",), "ID"),
        (("search",), "PHRASE"),
        (("retract",), "SNAPSHOT"),
        (("diff", "1"), "B"),
    ],
)
def test_a_lone_root_is_no_page(
    words: tuple[str, ...], name: str, small_root: SmallRoot, refinery: Refinery, tmp_path: Path
) -> None:
    """`refinery why ROOT` searched for the words of the usual root's path, and ended well."""
    done = refinery(*words, small_root.root)
    assert done.returncode == RecipeError.exit_code
    assert done.stderr.startswith(f"refinery: {small_root.root} is a root; name {name} before it, "), done.stderr
    (tmp_path / "data").mkdir()
    assert "is a root" not in refinery(*words, str(tmp_path / "data")).stderr
