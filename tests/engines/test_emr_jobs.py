"""Job runs of EMR Serverless: started once, looked at, canceled, and each failure by its cause.

The service is that of `tests.emr_server`: its answers fit botocore's model, and none is of AWS itself.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from refinery_spark import emr_jobs
from refinery_spark.address import OF_SPARK, SUBMITTED, application_of, spark_address
from refinery_spark.cluster_jobs import EmrJobs
from refinery_spark.emr_jobs import JobRun, require_application, submit
from refinery_spark.engine import jobs, require_answer
from refinery_spark.spark import session, task_settings

from pipeline_tasks.engines.address import Place
from pipeline_tasks.engines.choose import engine
from pipeline_tasks.engines.cluster_jobs import COMING, GONE
from pipeline_tasks.errors import JobLost, RecipeError, RefineryError, Transient
from pipeline_tasks.recipe import Resources
from pipeline_tasks.store import storage
from tests.emr_server import ADDRESS, APPLICATION, ROLE, Emr, Fault, emr_server

WORDS = ["pipeline_tasks.service.driver", "s3://bucket/root", "session", "1"]


@pytest.fixture
def emr(tmp_path: Path, s3_root: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emr]:
    with emr_server(tmp_path) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_EMR_SERVERLESS", server.endpoint)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        server.planned = ["SUBMITTED", "RUNNING"]
        yield server


# --- Words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place(f"emr-serverless://{APPLICATION}/;role={ROLE}"), f"emr-serverless://{APPLICATION}/;role={ROLE}"),
        (Place(ADDRESS), ADDRESS),
        (Place(f"emr-serverless://{APPLICATION}/;region=eu-west-1;role={ROLE}"), ADDRESS),
        (Place(f"{APPLICATION}/;role={ROLE};region=eu-west-1", 0, "emr-serverless"), ADDRESS),
    ],
)
def test_an_application_is_written_in_one_way(place: Place, expected: str) -> None:
    assert spark_address(place.written()) == expected
    assert jobs(expected) is EmrJobs
    assert application_of(expected).id == APPLICATION


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("emr-serverless://", "no id of an application"),
        (f"emr-serverless:///;role={ROLE}", "no id of an application"),
        (f"emr-serverless://Refinery/;role={ROLE}", "no id of an application"),
        (f"emr-serverless://{APPLICATION}", "has no role"),
        (f"emr-serverless://{APPLICATION}/;role=refinery", "its role is none of AWS"),
        (f"emr-serverless://{APPLICATION}/;role={ROLE};region=here", "its region is none of AWS"),
    ],
)
def test_what_is_no_application_is_refused_with_every_form_that_is(written: str, why: str) -> None:
    with pytest.raises(RecipeError) as refusal:
        spark_address(written)
    assert why in str(refusal.value)
    assert OF_SPARK.forms in str(refusal.value)


def test_a_key_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(RecipeError) as refusal:
        spark_address(f"{ADDRESS};aws_secret_access_key=s3cret")
    assert "s3cret" not in str(refusal.value)
    assert "aws_secret_access_key" in str(refusal.value)


@pytest.mark.parametrize("written", [SUBMITTED, "emr"])
def test_no_connection_names_the_spark_around_a_driver(written: str) -> None:
    with pytest.raises(RecipeError):
        spark_address(written)


def test_an_engine_cannot_send_its_tasks_to_an_application() -> None:
    with pytest.raises(RecipeError, match="takes whole requests"):
        engine("spark", ADDRESS)


def test_a_spark_around_a_process_that_nothing_submitted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(RecipeError, match="PYSPARK_GATEWAY_PORT"):
        session(SUBMITTED)


def test_tasks_of_a_driver_in_an_application_have_the_resources_of_the_recipe() -> None:
    given = task_settings(SUBMITTED, Resources(cores=2, memory=4))
    beside = {"spark.executor.memoryOverhead": "4096m"}
    assert given == {"spark.task.cpus": "2", "spark.executor.cores": "2"} | beside


# --- Starting ---------------------------------------------------------------------------------------------------------


def test_a_job_run_is_a_module_with_its_arguments_by_the_role_and_no_key(emr: Emr, s3_root: str) -> None:
    submit(ADDRESS, s3_root, "extract-1", WORDS, "token")
    [asked] = emr.asked("StartJobRun")
    place = f"{s3_root}/requests/extract-1"
    assert asked["executionRoleArn"] == ROLE
    assert asked["jobDriver"]["sparkSubmit"] == {"entryPoint": f"{place}/driver.py", "entryPointArguments": WORDS}
    monitoring = asked["configurationOverrides"]["monitoringConfiguration"]
    assert monitoring == {"s3MonitoringConfiguration": {"logUri": f"{place}/"}}
    assert asked.keys() == {
        "applicationId", "clientToken", "executionRoleArn", "name", "jobDriver", "configurationOverrides"
    }  # fmt: skip
    assert storage.connect(s3_root).read("requests/extract-1/driver.py") == emr_jobs.ENTRY_POINT


@pytest.mark.parametrize("fault", [(429, "ThrottlingException"), (500, "InternalServerException"), "lost"])
def test_a_start_whose_answer_does_not_come_is_asked_again_and_starts_one(
    emr: Emr, s3_root: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    emr.faults = [("StartJobRun", fault)]
    run = submit(ADDRESS, s3_root, "s", WORDS, "token")
    assert [asked["clientToken"] for asked in emr.asked("StartJobRun")] == ["token"] * 2
    assert list(emr.runs) == [run]
    assert submit(ADDRESS, s3_root, "s", WORDS, "token") == run
    assert submit(ADDRESS, s3_root, "s", WORDS, "another") != run


def test_the_name_of_a_driver_decides_the_token_and_the_root_does_too(emr: Emr, s3_root: str) -> None:
    for root, name in ((s3_root, "a"), (s3_root, "a"), (s3_root, "b"), (f"{s3_root}2", "a")):
        EmrJobs(ADDRESS, root, "s").submit("m", ["1"], name)
    tokens = [asked["clientToken"] for asked in emr.asked("StartJobRun")]
    assert (tokens[0], len(set(tokens))) == (tokens[1], 3)
    assert all(len(token) <= 64 for token in tokens)


@pytest.mark.parametrize(
    ("fault", "kind", "named"),
    [
        ((429, "ThrottlingException"), JobLost, "tried again"),
        ((400, "TooManyRequestsException"), JobLost, "tried again"),
        ((402, "ServiceQuotaExceededException"), JobLost, "tried again"),
        ((409, "ConflictException"), JobLost, "tried again"),
        ((500, "InternalServerException"), JobLost, "tried again"),
        ((503, "ServiceUnavailable"), JobLost, "tried again"),
        ("lost", JobLost, "did not answer"),
        ((403, "AccessDeniedException"), RecipeError, "iam:PassRole"),
        ((403, "ExpiredTokenException"), RecipeError, "StartJobRun"),
        ((400, "ValidationException"), RecipeError, "spark_default"),
        ((404, "ResourceNotFoundException"), RecipeError, "spark_default"),
    ],
)
def test_an_error_of_the_service_is_ours_by_its_cause(
    emr: Emr, s3_root: str, fault: Fault, kind: type[RefineryError], named: str
) -> None:
    run = JobRun(ADDRESS, s3_root, "s", submit(ADDRESS, s3_root, "s", WORDS, "token"))
    does = {
        "StartJobRun": lambda: submit(ADDRESS, s3_root, "s", WORDS, "token"),
        "GetJobRun": run.look,
        "CancelJobRun": run.cancel,
        "GetApplication": lambda: require_application(ADDRESS),
    }
    for operation, call in does.items():
        emr.faults = [(operation, fault)]
        with pytest.raises(kind, match=named) as raised:
            call()
        assert type(raised.value) is kind
        assert ADDRESS in str(raised.value)


def test_a_service_that_is_not_there_is_a_lost_job(emr: Emr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_EMR_SERVERLESS", "http://127.0.0.1:9")
    with pytest.raises(JobLost, match=APPLICATION):
        require_application(ADDRESS)


def test_no_key_and_no_region_are_named(
    emr: Emr, s3_root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del s3_root
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(RecipeError, match="no region"):
        require_application(ADDRESS.removesuffix(";region=eu-west-1"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(RecipeError, match="no credentials"):
        require_application(ADDRESS)
    assert emr.requests == []


def test_requests_go_to_the_region_of_the_address(emr: Emr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert emr_jobs._client(application_of(ADDRESS)).meta.region_name == "eu-west-1"
    assert emr_jobs._client(application_of(ADDRESS.removesuffix(";region=eu-west-1"))).meta.region_name == "us-east-1"
    assert emr.requests == []


@pytest.mark.parametrize(
    ("application", "why"),
    [
        ({"type": "Hive"}, "is of Hive"),
        ({"state": "TERMINATED"}, "is TERMINATED"),
        ({"state": "STOPPED", "autoStartConfiguration": {"enabled": False}}, "is STOPPED"),
    ],
)
def test_an_application_that_runs_nothing_is_refused_before_a_run(
    emr: Emr, application: dict[str, object], why: str
) -> None:
    require_answer(ADDRESS)
    emr.application = application
    with pytest.raises(RecipeError, match=why):
        require_answer(ADDRESS)
    emr.application = {"state": "STOPPED", "autoStartConfiguration": {"enabled": True}}
    require_answer(ADDRESS)


@pytest.mark.parametrize("uri", ["/data/root", "file:///data/root", "gs://bucket/root", "az://bucket/root"])
def test_a_root_or_landing_outside_of_s3_is_refused(uri: str) -> None:
    for uris in ((uri, "s3://bucket/landing"), ("s3://bucket/root", uri)):
        with pytest.raises(RecipeError, match="is not in S3"):
            EmrJobs(ADDRESS, uris[0], "s").require(*uris)


# --- Looking ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "standing", "has_ended"),
    [
        ("SUBMITTED", COMING, False),
        ("QUEUED", COMING, False),
        ("PENDING", COMING, False),
        ("SCHEDULED", COMING, False),
        ("RUNNING", "", False),
        ("CANCELLING", "", False),
        ("SUCCESS", GONE, True),
        ("FAILED", GONE, True),
        ("CANCELLED", GONE, True),
    ],
)
def test_each_state_of_a_job_run_says_where_it_stands(
    emr: Emr, s3_root: str, state: str, standing: str, has_ended: bool
) -> None:
    emr.planned = [state]
    jobs = EmrJobs(ADDRESS, s3_root, "s")
    run = jobs.submit("m", ["1"], "name")
    assert (jobs.standing(run), jobs.has_ended(run)) == (standing, has_ended)
    assert f"is {state}" in jobs.loss(run, lived=True)[1]


def test_every_state_of_the_service_is_known() -> None:
    from tests.emr_server import model

    assert set(model().shape_for("JobRunState").enum) == {*emr_jobs.WAITING, *emr_jobs.ENDED, "RUNNING", "CANCELLING"}


def test_all_who_wait_ask_once(emr: Emr, s3_root: str) -> None:
    jobs = EmrJobs(ADDRESS, s3_root, "s")
    run = jobs.submit("m", ["1"], "name")
    for _ in range(100):
        EmrJobs(ADDRESS, s3_root, "s").standing(run)
    assert len(emr.asked("GetJobRun")) == 1


def test_a_service_that_is_busy_is_asked_by_one_of_those_who_wait(emr: Emr, s3_root: str) -> None:
    """A triggerer has few threads: who waits for AWS's repeated requests keeps one."""
    jobs = EmrJobs(ADDRESS, s3_root, "s")
    run = jobs.submit("m", ["1"], "name")
    emr.faults = [("GetJobRun", (429, "ThrottlingException"))]
    with pytest.raises(JobLost):
        jobs.standing(run)
    assert [jobs.standing(run) for _ in range(9)] == [""] * 9
    assert len(emr.asked("GetJobRun")) == 1
    with emr_jobs.job_run(ADDRESS, s3_root, "s", run).lock:
        assert jobs.standing(run) == ""


def test_a_job_run_that_has_ended_is_not_asked_again(emr: Emr, s3_root: str) -> None:
    emr.planned = ["SUCCESS"]
    run = JobRun(ADDRESS, s3_root, "s", submit(ADDRESS, s3_root, "s", WORDS, "token"))
    assert run.look().look().look().has_ended
    assert len(emr.asked("GetJobRun")) == 1


# --- Ending -----------------------------------------------------------------------------------------------------------


def test_a_canceled_job_run_ends_and_one_that_has_ended_is_left(emr: Emr, s3_root: str) -> None:
    run = JobRun(ADDRESS, s3_root, "s", submit(ADDRESS, s3_root, "s", WORDS, "token"))
    run.cancel()
    assert run.look().state == "CANCELLED"
    emr.faults = [("CancelJobRun", (400, "ValidationException"))]
    run.cancel()


@pytest.mark.parametrize(
    ("state", "details", "lived", "kind"),
    [
        ("FAILED", "Job failed, please check complete logs. ExitCode: 1", False, RecipeError),
        ("FAILED", "Access denied when reading s3://b/driver.py", False, RecipeError),
        ("FAILED", "SparkUserAppException: User application exited with 78", False, RecipeError),
        ("FAILED", "SparkUserAppException: User application exited with 75", False, Transient),
        ("FAILED", "ExitCode: 137", False, JobLost),
        ("FAILED", "The application has insufficient capacity", False, JobLost),
        ("FAILED", "ServiceQuotaExceeded: quota of vCPU", False, JobLost),
        ("FAILED", "Rate exceeded: throttled", False, JobLost),
        ("FAILED", "An internal error occurred", False, JobLost),
        ("FAILED", "Job failed. ExitCode: 1", True, JobLost),
        ("CANCELLED", "", False, JobLost),
        ("SUCCESS", "", True, JobLost),
        ("RUNNING", "", True, JobLost),
    ],
)
def test_a_lost_driver_is_an_error_by_what_ended_its_job_run(
    emr: Emr, s3_root: str, state: str, details: str, lived: bool, kind: type[RefineryError]
) -> None:
    emr.planned, emr.details = [state], details
    jobs = EmrJobs(ADDRESS, s3_root, "s")
    run = jobs.submit("m", ["1"], "name")
    found, account = jobs.loss(run, lived=lived)
    assert found is kind
    assert run in account
    assert details in account


def test_the_log_of_a_job_run_is_in_the_root(emr: Emr, s3_root: str) -> None:
    jobs = EmrJobs(ADDRESS, s3_root, "s")
    run = jobs.submit("m", ["1"], "name")
    place = f"requests/s/applications/{APPLICATION}/jobs/{run}/SPARK_DRIVER/stderr.gz"
    assert jobs.log_words(run, 4) == jobs.words(run)
    assert f"{s3_root}/{place}" in jobs.words(run)
    storage.connect(s3_root).create(place, gzip.compress(b"the end"))
    assert jobs.log_words(run, 3).endswith("ends: end")
    storage.connect(s3_root).delete(place)
    storage.connect(s3_root).create(place, b"no gzip")
    assert jobs.log_words(run, 3) == jobs.words(run)
