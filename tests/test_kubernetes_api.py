"""Every object of the Kubernetes template is one that the API takes: each is held against the API's own schemas, strictly.

The schemas are those of `kubernetes-validate`. They say which fields an object has, which it must have, and their types; what
an API server checks beyond that (a name's letters, the unit of a quantity, whether an account is there) they do not say. A
RayCluster is KubeRay's, whose schema no package of Python carries: its pods are held against those of the API, and its own
fields against the list in `test_kubernetes`.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from kubernetes_validate import SchemaNotFoundError, ValidationError, validate

from tests.test_kubernetes import FOLDER, documents, named, objects

VERSIONS = ("1.30", "1.37")
"""The oldest and the newest Kubernetes whose API has to take the template."""

FOREIGN = {"Kustomization", "RayCluster"}
"""Kinds that are not of Kubernetes' own API, so that it has no schema of them."""

Object = dict[str, Any]


def pod(template: Object) -> Object:
    """A pod as the controller of a template makes it."""
    return {"apiVersion": "v1", "kind": "Pod", **template}


def generated() -> Iterator[tuple[str, Object]]:
    """The pods that Spark, KubeRay and Airflow's chart make of the template, by a name."""
    yield "Pod/executor", yaml.safe_load(named("ConfigMap", "spark")["data"]["executor.yaml"])
    ray = named("RayCluster", "refinery")["spec"]
    for group in (ray["headGroupSpec"], *ray["workerGroupSpecs"]):
        yield f"Pod/ray-{group.get('groupName', 'head')}", pod(group["template"])
    options = ray["autoscalerOptions"]
    beside = {"name": "autoscaler", "resources": options["resources"], "securityContext": options["securityContext"]}
    yield "Pod/ray-autoscaler", pod({"metadata": {"name": "ray"}, "spec": {"containers": [beside]}})
    values = documents("airflow-values.yaml")[0]
    for part in ("scheduler", "triggerer", "dagProcessor", "apiServer"):
        yield f"Pod/airflow-{part}", pod(_of_chart(part, values))


def _of_chart(part: str, values: Object) -> Object:
    container = {
        "name": part.lower(),
        "env": values["env"],
        "envFrom": yaml.safe_load(values["extraEnvFrom"]),
        "resources": values[part]["resources"],
        "securityContext": values["securityContexts"]["containers"],
    }
    spec = {"containers": [container], "nodeSelector": values[part]["nodeSelector"]}
    return {"metadata": {"name": part.lower()}, "spec": spec | {"securityContext": values["securityContexts"]["pod"]}}


def everything() -> dict[str, Object]:
    own = {f"{part['kind']}/{part['metadata']['name']}": part for part in objects() if part["kind"] not in FOREIGN}
    return own | dict(generated())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sorted(everything()))
def test_the_api_takes_every_object(name: str, version: str) -> None:
    assert validate(everything()[name], version, strict=True) == version


def test_no_object_of_the_folder_is_left_out() -> None:
    written = [part for path in sorted(FOLDER.glob("*.yaml")) for part in documents(path.name) if "kind" in part]
    kinds = {part["kind"] for part in written}
    assert kinds - {name.split("/")[0] for name in everything()} == FOREIGN
    assert sum(part["kind"] not in FOREIGN for part in written) == len(everything()) - len(dict(generated()))


@pytest.mark.parametrize("kind", sorted(FOREIGN))
def test_what_is_said_to_have_no_schema_has_none(kind: str) -> None:
    """Once a release of the schemas knows one, it is validated, too."""
    found = next(
        part for path in sorted(FOLDER.glob("*.yaml")) for part in documents(path.name) if part.get("kind") == kind
    )
    with pytest.raises(SchemaNotFoundError):
        validate(found, VERSIONS[-1], strict=True)


def container(written: Object) -> Object:
    spec = written["spec"] if written["kind"] == "Pod" else written["spec"]["template"]["spec"]
    first: Object = spec["containers"][0]
    return first


WRONG: dict[str, tuple[str, Callable[[Object], object]]] = {
    "a field in the wrong letters": ("Deployment/spark-connect", lambda d: d["spec"].update(Replicas=1)),
    "a field in the wrong place": ("Deployment/spark-connect", lambda d: d.update(containers=[])),
    "a number as text": ("Deployment/spark-connect", lambda d: d["spec"].update(replicas="1")),
    "no selector": ("Deployment/spark-connect", lambda d: d["spec"].pop("selector")),
    "a container without a name": ("Deployment/spark-connect", lambda d: container(d).pop("name")),
    "a variable that is no text": (
        "Deployment/spark-connect",
        lambda d: container(d)["env"].append({"name": "A", "value": 1}),
    ),
    "a variable without a name": ("Pod/airflow-scheduler", lambda d: container(d)["env"].append({"value": "a"})),
    "a limit in the wrong letters": ("Pod/ray-spot", lambda d: container(d)["resources"].update(limit={"cpu": "1"})),
    "a capability that is no list": (
        "Pod/executor",
        lambda d: container(d)["securityContext"].update(capabilities="ALL"),
    ),
    "a toleration in the wrong letters": (
        "Pod/executor",
        lambda d: d["spec"]["tolerations"][0].update(efect="NoSchedule"),
    ),
    "a flag that is text": ("Pod/ray-head", lambda d: d["spec"]["securityContext"].update(runAsNonRoot="true")),
    "a mount without a path": ("Pod/ray-head", lambda d: container(d)["volumeMounts"].append({"name": "scratch"})),
    "a port that is no number": ("Service/spark-connect", lambda d: d["spec"]["ports"][0].update(port="connect")),
    "a setting that is no text": ("ConfigMap/refinery", lambda d: d["data"].update(AWS_REGION=1)),
    "a rule without verbs": ("Role/spark-driver", lambda d: d["rules"][0].pop("verbs")),
    "a binding without a role": ("RoleBinding/spark-driver", lambda d: d.pop("roleRef")),
    "a peer in the wrong letters": ("NetworkPolicy/ray-jobs", lambda d: d["spec"]["ingress"][0].update({"form": []})),
    "a policy whose types are text": ("NetworkPolicy/engines", lambda d: d["spec"].update(policyTypes="Ingress")),
    "an account whose flag is text": (
        "ServiceAccount/ray-worker",
        lambda d: d.update(automountServiceAccountToken="no"),
    ),
}
"""What is planted, by what it is: {fault: (object, change)}."""


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_object_is_refused(fault: str) -> None:
    name, plant = WRONG[fault]
    planted = copy.deepcopy(everything()[name])
    plant(planted)
    with pytest.raises(ValidationError):
        validate(planted, VERSIONS[-1], strict=True)


def test_every_kind_has_a_wrong_one() -> None:
    assert {name.split("/")[0] for name, _ in WRONG.values()} == {name.split("/")[0] for name in everything()}
