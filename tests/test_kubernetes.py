"""The Kubernetes template is sound YAML, agrees with compose and the code, and keeps what must stay off spot nodes."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from refinery_ray.address import is_jobs_api, ray_address
from refinery_spark.address import spark_address

from tests.installed import lines_of

PROJECT = Path(__file__).parents[1]
FOLDER = PROJECT / "deploy" / "kubernetes"
SPARK_OF_COMPOSE = PROJECT / "deploy" / "image" / "spark-defaults.conf"
ENTRY_POINT = "/opt/refinery/deploy/image/entrypoint.sh"
SPOT = {"key": "refinery/capacity", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}

RAY = {"rayVersion", "enableInTreeAutoscaling", "autoscalerOptions", "headGroupSpec", "workerGroupSpecs"}
AUTOSCALER = {"version", "securityContext", "upscalingMode", "idleTimeoutSeconds", "resources"}
HEAD = {"serviceType", "rayStartParams", "template"}
GROUP = {"groupName", "minReplicas", "replicas", "maxReplicas", "numOfHosts", "rayStartParams", "template"}
"""Fields of KubeRay's API v1 (https://ray-project.github.io/kuberay/reference/api/) that the template uses."""


def documents(name: str) -> list[dict[str, Any]]:
    return [part for part in yaml.safe_load_all((FOLDER / name).read_text()) if part]


def objects() -> Iterator[dict[str, Any]]:
    for name in documents("kustomization.yaml")[0]["resources"]:
        yield from documents(name)


def named(kind: str, name: str) -> dict[str, Any]:
    return next(part for part in objects() if part["kind"] == kind and part["metadata"]["name"] == name)


@pytest.fixture
def ray() -> dict[str, Any]:
    spec: dict[str, Any] = named("RayCluster", "refinery")["spec"]
    return spec


@pytest.fixture
def spark() -> dict[str, str]:
    lines = named("ConfigMap", "spark")["data"]["spark-defaults.conf"].splitlines()
    return dict(line.split(None, 1) for line in lines if not line.startswith("#"))


@pytest.fixture
def executor() -> dict[str, Any]:
    pod: dict[str, Any] = yaml.safe_load(named("ConfigMap", "spark")["data"]["executor.yaml"])["spec"]
    return pod


@pytest.fixture
def compose() -> dict[str, Any]:
    written: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yaml").read_text())
    return written


def pins() -> Mapping[str, str]:
    listed = lines_of("refine")
    return dict(re.fullmatch(r"([\w.-]+)(?:\[.*\])?==(.+)", pin).groups() for pin in listed if "==" in pin)  # type: ignore[union-attr]


def test_every_object_has_a_kind_a_name_and_the_namespace() -> None:
    for part in objects():
        assert {"apiVersion", "kind", "metadata"} <= part.keys()
        assert part["metadata"]["namespace"] == "refinery"
    names = [(part["kind"], part["metadata"]["name"]) for part in objects()]
    assert len(names) == len(set(names))


def test_the_ray_cluster_has_fields_of_kuberay_and_our_version(ray: dict[str, Any]) -> None:
    assert ray.keys() == RAY
    assert ray["autoscalerOptions"].keys() <= AUTOSCALER
    assert ray["headGroupSpec"].keys() <= HEAD
    assert all(group.keys() <= GROUP for group in ray["workerGroupSpecs"])
    assert ray["rayVersion"] == pins()["ray"]
    assert documents("airflow-values.yaml")[0]["airflowVersion"] == pins()["apache-airflow"]


def test_workers_are_on_spot_nodes_and_what_must_stay_is_not(ray: dict[str, Any], executor: dict[str, Any]) -> None:
    workers = [group["template"]["spec"] for group in ray["workerGroupSpecs"]]
    for pod in [*workers, executor]:
        assert pod["nodeSelector"] == {"refinery/capacity": "spot"}
        assert pod["tolerations"] == [SPOT]
    airflow = documents("airflow-values.yaml")[0]
    head, connect = ray["headGroupSpec"]["template"]["spec"], named("Deployment", "spark-connect")
    parts = [airflow[name] for name in ("scheduler", "triggerer", "dagProcessor", "apiServer")]
    for pod in [head, connect["spec"]["template"]["spec"], *parts]:
        assert pod["nodeSelector"] == {"refinery/capacity": "on-demand"}
        assert "tolerations" not in pod


def test_both_engines_grow_from_nothing(ray: dict[str, Any], spark: dict[str, str]) -> None:
    assert ray["enableInTreeAutoscaling"]
    assert ray["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    [group] = ray["workerGroupSpecs"]
    assert group["minReplicas"] == 0 < group["maxReplicas"]
    assert (
        spark["spark.dynamicAllocation.enabled"] == spark["spark.dynamicAllocation.shuffleTracking.enabled"] == "true"
    )
    assert int(spark["spark.dynamicAllocation.minExecutors"]) == 0


def test_pods_bring_the_loops_of_the_image(ray: dict[str, Any], executor: dict[str, Any]) -> None:
    """KubeRay and Spark set commands of their own, so that the image's entry point does not run by itself."""
    groups = [ray["headGroupSpec"], *ray["workerGroupSpecs"]]
    for pod in [executor, *(group["template"]["spec"] for group in groups)]:
        [container] = pod["containers"]
        assert container["command"][0] == ENTRY_POINT
        assert {"name": "scratch", "mountPath": "/scratch"} in container["volumeMounts"]


def test_settings_are_those_of_compose(compose: dict[str, Any], spark: dict[str, str]) -> None:
    maps = ("refinery", "refinery-ray", "refinery-airflow")
    settings = {name: value for part in maps for name, value in named("ConfigMap", part)["data"].items()}
    theirs = compose["x-airflow"]["environment"]
    assert settings.keys() <= theirs.keys()
    for name in ("REFINERY_HOME", "GX_ANALYTICS_ENABLED", "RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED"):
        assert settings[name] == theirs[name]
    for name in ("spark.authenticate", "spark.network.crypto.enabled", "spark.network.crypto.cipher"):
        assert f"{name} {spark[name]}" in re.sub(r" +", " ", SPARK_OF_COMPOSE.read_text())
    assert not [part for part in objects() if part["kind"] == "Secret"]


def test_every_image_is_the_one_that_compose_builds(compose: dict[str, Any]) -> None:
    image = re.sub(r"\$\{REFINERY_IMAGE:-(.*)\}", r"\1", compose["x-refinery"]["image"])
    written = re.findall(r"image: (\S+)", "".join((FOLDER / name).read_text() for name in ("ray.yaml", "spark.yaml")))
    assert set(written) == {image}
    values = documents("airflow-values.yaml")[0]
    assert f"{values['defaultAirflowRepository']}:{values['defaultAirflowTag']}" == image


def test_connections_lead_to_the_services_of_the_template(spark: dict[str, str]) -> None:
    connection = yaml.safe_load(named("ConfigMap", "refinery-airflow")["data"]["AIRFLOW_CONN_RAY_DEFAULT"])
    address = ray_address(f"{connection['host']}:{connection['port']}")
    assert is_jobs_api(address)
    assert connection["host"] == "http://refinery-head-svc"  # KubeRay's name for the head of the cluster `refinery`
    ports = {port["name"]: port["port"] for port in named("Service", "spark-connect")["spec"]["ports"]}
    assert spark_address("sc://spark-connect") == f"sc://spark-connect:{ports['connect']}"
    assert (spark["spark.driver.port"], spark["spark.blockManager.port"]) == (
        str(ports["driver"]),
        str(ports["blocks"]),
    )
    assert spark["spark.driver.host"].startswith("spark-connect.")
