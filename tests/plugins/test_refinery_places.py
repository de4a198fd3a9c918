"""Places that runs may name: those of the workers' variable, and nothing by a detour."""

from pathlib import Path

import pytest

from pipeline_tasks.errors import RecipeError


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two buckets, one of them only below a prefix, and a folder beside one that is not named."""
    for name in ("team", "team2"):
        (tmp_path / name).mkdir()
    (tmp_path / "team" / "link").symlink_to(tmp_path / "team2")
    monkeypatch.setenv("REFINERY_PLACES", f"s3://ours/ s3://shared/team\n{tmp_path}/team")
    monkeypatch.setenv("REFINERY_ROOT", "s3://root/refined")
    monkeypatch.setenv("REFINERY_LANDING", "/landing/")
    return tmp_path


@pytest.mark.parametrize(
    "place",
    [
        "s3://ours",
        "s3://ours/a/b",
        "s3://shared/team/",
        "s3://root/refined/x",
        "/landing/2026-11-20",
        "file:///landing/2026-11-20",
        "TMP/team",
        "TMP/team/new/snapshot.json",
        "TMP/team2/../team/a",
        "",
        None,
    ],
)
def test_a_run_may_name_these_places_and_what_is_below_them(place: str | None, places: Path) -> None:
    from refinery_airflow.runs.places import require_admitted

    require_admitted("s3://ours", place and place.replace("TMP", str(places)))


@pytest.mark.parametrize(
    "place",
    [
        "s3://ours2",
        "s3://shared",
        "s3://shared/team2",
        "s3://root",
        "s3://ours/../shared",
        "/landing2",
        "/landing/../etc/passwd",
        "file:///etc",
        "gs://ours",
        "TMP/team2",
        "TMP/team/link/a",
        "TMP/team/../team2",
        "ours",
    ],
)
def test_a_run_may_name_no_other_place(place: str, places: Path) -> None:
    from refinery_airflow.runs.places import require_admitted

    named = place.replace("TMP", str(places))
    with pytest.raises(RecipeError, match="REFINERY_PLACES"):
        require_admitted("s3://ours", named)


def test_every_request_of_a_task_is_confined_and_without_the_variable_none_is(
    monkeypatch: pytest.MonkeyPatch, places: Path
) -> None:
    from refinery_airflow.tasks.launch import prepared
    from refinery_models.requests import TrainModelRequest

    from pipeline_tasks.service.requests.stages import LandRequest
    from pipeline_tasks.service.requests.upkeep import VerifyRequest

    inside, outside = str(places / "team"), str(places / "team2")
    prepared(LandRequest(inside, inside))
    refused = [
        LandRequest(inside, outside),
        LandRequest(outside, inside),
        VerifyRequest(outside),
        TrainModelRequest(inside, "m", (outside,), (inside,)),
    ]
    for request in refused:
        with pytest.raises(RecipeError, match=outside):
            prepared(request)
    monkeypatch.delenv("REFINERY_PLACES")
    for request in refused:
        prepared(request)
