"""Airflow, Ray and Spark are zones of the Kubernetes template: each statement is of the parsed objects, and can fail.

`faults` says what of a template is not as it should be. Each line of `WEAKENED` takes one thing away that a statement is of.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.test_kubernetes import documents, named, objects

STORE, RAY, SPARK, AIRFLOW = "refinery-store", "refinery-ray", "refinery-spark", "refinery-airflow"
SECRETS = {
    "head": {STORE, RAY},
    "worker": {STORE, RAY},
    "driver": {STORE, SPARK},
    "executor": {STORE},
    "airflow": {STORE, RAY, AIRFLOW},
}
ACCOUNTS = {"head": "ray-head", "worker": "ray-worker", "driver": "spark-driver", "executor": "spark-executor"}
TOKENLESS = ("worker", "executor")
"""Parts that run kernels, which read pages of strangers: they have no token of the cluster's API."""

OPEN = {53, 443}
"""Ports outside of its zone that every pod of an engine reaches: names, and the object store."""

CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass
class Template:
    """The objects of the template, the executor's pod that Spark's settings have in them, and the values of Airflow's chart."""

    objects: list[dict[str, Any]]
    executor: dict[str, Any]
    values: dict[str, Any]

    def named(self, kind: str, name: str) -> dict[str, Any]:
        return next(part for part in self.objects if (part["kind"], part["metadata"]["name"]) == (kind, name))

    def policy(self, name: str) -> dict[str, Any]:
        spec: dict[str, Any] = self.named("NetworkPolicy", name)["spec"]
        return spec

    def pods(self) -> dict[str, dict[str, Any]]:
        """Return the pod of each part by the name of its label, and not by its place."""
        ray = self.named("RayCluster", "refinery")["spec"]
        connect = self.named("Deployment", "spark-connect")["spec"]
        pods = [ray["headGroupSpec"]["template"], ray["workerGroupSpecs"][0]["template"], connect["template"]]
        return dict(zip(("head", "worker", "driver", "executor"), [*pods, self.executor], strict=True))


@pytest.fixture
def template() -> Template:
    executor = yaml.safe_load(named("ConfigMap", "spark")["data"]["executor.yaml"])
    parts = (list(objects()), executor, documents("airflow-values.yaml")[0])
    # an anchor is one object for all that name it, and a test changes one of them: JSON has no anchors
    return Template(*(json.loads(json.dumps(part)) for part in parts))


def faults(template: Template) -> Iterator[str]:
    for part, pod in template.pods().items():
        yield from _faults_of_pod(template, part, pod)
    yield from _faults_of_airflow(template.values)
    yield from _faults_of_roles(template)
    yield from _faults_of_network(template)


def _faults_of_pod(template: Template, part: str, pod: dict[str, Any]) -> Iterator[str]:
    spec, [container] = pod["spec"], pod["spec"]["containers"]
    zone = "ray" if part in ("head", "worker") else "spark"
    if pod["metadata"]["labels"].get("refinery/zone") != zone or pod["metadata"]["labels"].get("refinery/part") != part:
        yield f"{part}: labels"
    if spec["serviceAccountName"] != ACCOUNTS[part]:
        yield f"{part}: account"
    account = template.named("ServiceAccount", ACCOUNTS[part])
    if part in TOKENLESS and (
        spec.get("automountServiceAccountToken"),
        account.get("automountServiceAccountToken"),
    ) != (
        False,
        False,
    ):
        yield f"{part}: token"
    if _secrets(container["envFrom"]) != SECRETS[part]:
        yield f"{part}: secrets"
    user = spec.get("securityContext", {})
    if not user.get("runAsNonRoot") or not user.get("runAsUser"):
        yield f"{part}: user"
    if user.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield f"{part}: calls"
    if container.get("securityContext") != {**CONFINED, "readOnlyRootFilesystem": True}:
        yield f"{part}: confined"
    if part != "executor" and container["resources"].keys() != {"requests", "limits"}:  # Spark sets an executor's
        yield f"{part}: limits"


def _secrets(sources: list[dict[str, Any]]) -> set[str]:
    return {source["secretRef"]["name"] for source in sources if "secretRef" in source}


def _faults_of_airflow(values: dict[str, Any]) -> Iterator[str]:
    if _secrets(yaml.safe_load(values["extraEnvFrom"])) != SECRETS["airflow"]:
        yield "airflow: secrets"
    if values.get("allowPodLaunching") is not False:
        yield "airflow: makes pods"
    if not values.get("networkPolicies", {}).get("enabled"):
        yield "airflow: network"
    contexts = values.get("securityContexts", {})
    if not contexts.get("pod", {}).get("runAsNonRoot") or contexts.get("containers") != CONFINED:
        yield "airflow: confined"


def _faults_of_roles(template: Template) -> Iterator[str]:
    bound = [part for part in template.objects if part["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    subjects = {subject["name"] for part in bound for subject in part["subjects"]}
    if subjects != {"spark-driver"}:
        yield "roles: subjects"
    if any(part["kind"].startswith("Cluster") for part in template.objects):
        yield "roles: of the cluster"
    if any("secrets" in rule["resources"] or "*" in rule["resources"] for rule in _rules(template)):
        yield "roles: read secrets"


def _rules(template: Template) -> Iterator[dict[str, Any]]:
    for part in template.objects:
        if part["kind"] == "Role":
            yield from part["rules"]


def _faults_of_network(template: Template) -> Iterator[str]:
    engines = template.policy("engines")
    [zones] = engines["podSelector"]["matchExpressions"]
    if (
        set(zones["values"]) != {"ray", "spark"}
        or engines["policyTypes"] != ["Ingress", "Egress"]
        or engines["ingress"]
    ):
        yield "network: closed"
    if {port["port"] for rule in engines["egress"] for port in rule.get("ports", [{"port": "every"}])} != OPEN:
        yield "network: ports"
    for zone in ("ray", "spark"):
        inside = [{"podSelector": {"matchLabels": {"refinery/zone": zone}}}]
        policy = template.policy(zone)
        if policy["ingress"] != [{"from": inside}] or policy["egress"] != [{"to": inside}]:
            yield f"network: {zone}"
    for name, port in (("ray-jobs", 8265), ("spark-connect", 15002)):
        [rule] = template.policy(name)["ingress"]
        if rule.get("from") != [{"podSelector": {"matchLabels": {"tier": "airflow"}}}]:
            yield f"network: {name}, who"
        if [each["port"] for each in rule.get("ports", [])] != [port]:
            yield f"network: {name}, where"
    if set(template.policy("cluster-api")["podSelector"]["matchExpressions"][0]["values"]) & set(TOKENLESS):
        yield "network: API"


def container(template: Template, part: str) -> dict[str, Any]:
    [found] = template.pods()[part]["spec"]["containers"]
    written: dict[str, Any] = found
    return written


PARTS = tuple(ACCOUNTS)

WEAKENED: dict[str, Callable[[Template], object]] = {
    **{
        f"{part}: labels": lambda t, part=part: t.pods()[part]["metadata"]["labels"].pop("refinery/zone")
        for part in PARTS
    },
    **{
        f"{part}: account": lambda t, part=part: t.pods()[part]["spec"].update(serviceAccountName="default")
        for part in PARTS
    },
    **{
        f"{part}: token": lambda t, part=part: t.pods()[part]["spec"].pop("automountServiceAccountToken")
        for part in TOKENLESS
    },
    **{
        f"{part}: secrets": lambda t, part=part: container(t, part)["envFrom"].append({"secretRef": {"name": AIRFLOW}})
        for part in PARTS
    },
    **{
        f"{part}: user": lambda t, part=part: t.pods()[part]["spec"]["securityContext"].pop("runAsNonRoot")
        for part in PARTS
    },
    **{
        f"{part}: calls": lambda t, part=part: t.pods()[part]["spec"]["securityContext"].pop("seccompProfile")
        for part in PARTS
    },
    **{
        f"{part}: confined": lambda t, part=part: container(t, part)["securityContext"].pop("readOnlyRootFilesystem")
        for part in PARTS
    },
    **{
        f"{part}: limits": lambda t, part=part: container(t, part)["resources"].pop("limits")
        for part in ("head", "worker")
    },
    "driver: limits": lambda t: container(t, "driver")["resources"].pop("limits"),
    "airflow: secrets": lambda t: t.values.update(extraEnvFrom="[{secretRef: {name: refinery-spark}}]"),
    "airflow: makes pods": lambda t: t.values.pop("allowPodLaunching"),
    "airflow: network": lambda t: t.values.pop("networkPolicies"),
    "airflow: confined": lambda t: t.values["securityContexts"].pop("containers"),
    "roles: subjects": lambda t: t.named("RoleBinding", "spark-driver")["subjects"].append({"name": "spark-executor"}),
    "roles: of the cluster": lambda t: t.named("Role", "spark-driver").update(kind="ClusterRole"),
    "roles: read secrets": lambda t: t.named("Role", "spark-driver")["rules"][0]["resources"].append("secrets"),
    "network: closed": lambda t: t.policy("engines").update(policyTypes=["Ingress"]),
    "network: ports": lambda t: t.policy("engines")["egress"].append({}),
    "network: ray": lambda t: t.policy("ray").update(ingress=[{}]),
    "network: spark": lambda t: t.policy("spark").update(egress=[{}]),
    "network: ray-jobs, who": lambda t: t.policy("ray-jobs")["ingress"][0].pop("from"),
    "network: spark-connect, where": lambda t: t.policy("spark-connect")["ingress"][0].pop("ports"),
    "network: API": lambda t: t.policy("cluster-api")["podSelector"]["matchExpressions"][0]["values"].append("worker"),
}
"""What is taken away, by the fault that it is: {fault: change}."""


def test_zones_are_apart(template: Template) -> None:
    assert list(faults(template)) == []


@pytest.mark.parametrize("fault", WEAKENED)
def test_a_weaker_template_is_noticed(template: Template, fault: str) -> None:
    WEAKENED[fault](template)
    assert list(faults(template)) == [fault]


def test_accounts_of_pods_that_run_kernels_have_no_token(template: Template) -> None:
    del template.named("ServiceAccount", "spark-executor")["automountServiceAccountToken"]
    assert list(faults(template)) == ["executor: token"]
