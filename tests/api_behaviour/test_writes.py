"""Trying without doing, checking fields, limits of size, and what is written of a status."""

from __future__ import annotations

import pytest

from tests import make
from tests.api_behaviour.deployments import deployment, deployments
from tests.api_behaviour.paths import maps
from tests.api_behaviour.wire import Api, Json


async def test_dry_run_create(api: Api, namespace: str) -> None:
    """A tried creation answers as the real one would, with a UID, and leaves nothing."""
    answer = await api.post(maps(namespace), make.config_map("a", k="v"), dryRun="All")
    assert answer.code == 201
    assert answer.ok()["metadata"]["uid"]
    assert not answer.ok()["metadata"].get("resourceVersion")
    assert (await api.get(f"{maps(namespace)}/a")).code == 404


async def test_dry_run_create_of_taken_name(api: Api, namespace: str) -> None:
    """A tried creation fails where the real one would."""
    await api.post(maps(namespace), make.config_map("a"))
    (await api.post(maps(namespace), make.config_map("a"), dryRun="All")).refused(409, "AlreadyExists")


async def test_dry_run_update(api: Api, namespace: str) -> None:
    """A tried update shows the change at the old version."""
    made = (await api.post(maps(namespace), make.config_map("a", k="v"))).ok()
    tried = (await api.merge(f"{maps(namespace)}/a", {"data": {"k": "w"}}, dryRun="All")).ok()
    assert tried["data"] == {"k": "w"}
    assert tried["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert (await api.get(f"{maps(namespace)}/a")).ok()["data"] == {"k": "v"}


async def test_dry_run_apply(api: Api, namespace: str) -> None:
    """An apply can be tried, also of what is not there."""
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    assert (await api.apply(f"{maps(namespace)}/a", wanted, "one", dryRun="All")).code == 201
    assert (await api.get(f"{maps(namespace)}/a")).code == 404


async def test_dry_run_delete(api: Api, namespace: str) -> None:
    """A tried deletion leaves the object."""
    await api.post(maps(namespace), make.config_map("a"))
    (await api.delete(f"{maps(namespace)}/a", dryRun="All")).ok()
    (await api.delete(f"{maps(namespace)}/a", {"dryRun": ["All"]})).ok()
    (await api.delete(maps(namespace), dryRun="All")).ok()
    assert (await api.get(f"{maps(namespace)}/a")).code == 200


async def test_dry_run_generate_name(api: Api, namespace: str) -> None:
    """A tried creation generates a name."""
    body = (await api.post(maps(namespace), {"metadata": {"generateName": "g-"}}, dryRun="All")).ok()
    assert len(body["metadata"]["name"]) == 7


BAD = b'{"metadata":{"name":"a"},"dota":{"k":"v"},"data":{"k":"v","k":"w"}}'


async def test_validation_ignore(api: Api, namespace: str) -> None:
    """By Ignore, unknown and repeated fields are dropped in silence."""
    answer = await api.post(maps(namespace), BAD, fieldValidation="Ignore")
    assert (answer.code, answer.warnings) == (201, "")
    assert answer.ok()["data"] == {"k": "w"}


@pytest.mark.parametrize("query", [{}, {"fieldValidation": "Warn"}])
async def test_validation_warn(api: Api, namespace: str, query: Json) -> None:
    """By Warn, the default, each is a warning header."""
    answer = await api.post(maps(namespace), BAD, **query)
    assert answer.code == 201
    assert answer.warnings == r'299 - "unknown field \"dota\"", 299 - "duplicate field \"data.k\""'


async def test_validation_strict(api: Api, namespace: str) -> None:
    """By Strict, they are an error that names them all."""
    answer = await api.post(maps(namespace), BAD, fieldValidation="Strict")
    answer.refused(
        400,
        "BadRequest",
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'unknown field "dota", duplicate field "data.k"',
    )


async def test_validation_of_nested_fields(api: Api, namespace: str) -> None:
    """The path of an unknown field is told with its positions."""
    wanted = make.pod("a", namespace).build()
    wanted["spec"]["containers"][0]["resources"] = {"limit": {}}
    answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", wanted, fieldValidation="Strict")
    assert answer.message.endswith('strict decoding error: unknown field "spec.containers[0].resources.limit"')


@pytest.mark.parametrize("way", ["merge", "strategic"])
async def test_validation_of_patches(api: Api, namespace: str, way: str) -> None:
    """Patches are checked as well."""
    await api.post(maps(namespace), make.config_map("a"))
    answer = await getattr(api, way)(f"{maps(namespace)}/a", {"dota": {"k": "v"}}, fieldValidation="Strict")
    assert answer.code == 422
    assert 'unknown field "dota"' in answer.message


async def test_validation_of_json_patch(api: Api, namespace: str) -> None:
    """A JSON patch that makes an unknown field is refused by Strict."""
    await api.post(maps(namespace), make.config_map("a"))
    operation = {"op": "add", "path": "/dota", "value": {"k": "v"}}
    answer = await api.json_patch(f"{maps(namespace)}/a", operation, fieldValidation="Strict")
    assert answer.code == 422
    assert 'unknown field "dota"' in answer.message


async def test_validation_of_apply(api: Api, namespace: str) -> None:
    """Apply refuses an unknown field in any mode."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dota": {}}
    answer = await api.apply(f"{maps(namespace)}/a", body, "one", fieldValidation="Ignore")
    assert answer.code in (400, 500)
    assert "field not declared in schema" in answer.message


async def test_size_limit(api: Api, namespace: str) -> None:
    """A request of more than 3 MiB is 413."""
    # Not much more: a server that gives up on reading a body cuts the line, and the answer may be lost.
    answer = await api.post(maps(namespace), make.config_map("a", big="x" * 3_200_000))
    assert answer.code == 413
    assert answer.body["reason"] == "RequestEntityTooLarge"


async def test_config_map_limit(api: Api, namespace: str) -> None:
    """A ConfigMap of more than 1 MiB is invalid."""
    answer = await api.post(maps(namespace), make.config_map("a", big="x" * 1_100_000))
    answer.refused(422, "Invalid", 'ConfigMap "a" is invalid: []: Too long: may not be more than 1048576 bytes')


async def test_deep_nesting(api: Api, namespace: str) -> None:
    """JSON of ten thousand levels is refused."""
    answer = await api.post(maps(namespace), b'{"a":' * 10001 + b"1" + b"}" * 10001)
    answer.refused(400, "BadRequest")
    assert "exceeded max depth" in answer.message


async def test_container_status(api: Api, namespace: str) -> None:
    """A container's status has all its required members, and a pod's address comes as a list too."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(pods, make.pod("a", namespace).build())
    status_sent = {"podIP": "10.1.1.1", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}
    status = (await api.merge(f"{pods}/a/status", {"status": status_sent})).ok()["status"]
    assert status["podIPs"] == [{"ip": "10.1.1.1"}]
    (container,) = status["containerStatuses"]
    assert (container["ready"], container["restartCount"], container["image"], container["imageID"]) == (
        False,
        0,
        "",
        "",
    )
    assert container["lastState"] == {}


async def test_node_status(api: Api, namespace: str) -> None:
    """A node's allocatable is its capacity unless it says otherwise."""
    name = f"cap-{namespace}"
    await api.post("/api/v1/nodes", {"metadata": {"name": name}})
    capacity = {"cpu": "4", "nvidia.com/gpu": "8"}
    status = (await api.merge(f"/api/v1/nodes/{name}/status", {"status": {"capacity": capacity}})).ok()["status"]
    assert status["allocatable"] == capacity
    assert status["nodeInfo"]["kubeletVersion"] == ""
    (await api.delete(f"/api/v1/nodes/{name}")).ok()


async def test_creator_of_status(api: Api, namespace: str) -> None:
    """Whoever creates an object does not own its status, nor the list of containers as such."""
    body = (await api.post(f"/api/v1/namespaces/{namespace}/pods", make.pod("a", namespace).build())).ok()
    (entry,) = body["metadata"]["managedFields"]
    assert set(entry["fieldsV1"]) == {"f:spec"}
    assert list(entry["fieldsV1"]["f:spec"]["f:containers"]) == ['k:{"name":"main"}']


async def test_log_of_waiting_pod(api: Api, namespace: str) -> None:
    """A pod that is on no node has no log: 204."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(pods, make.pod("a", namespace).build())
    assert (await api.get(f"{pods}/a/log")).code == 204


async def test_times_that_were_never(api: Api, namespace: str) -> None:
    """Times of conditions and states that nobody set are null."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(pods, make.pod("a", namespace).build())
    state = {"terminated": {"exitCode": 1}}
    status_sent = {
        "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [{"name": "main", "state": state, "lastState": {"running": {}}}],
    }
    status = (await api.merge(f"{pods}/a/status", {"status": status_sent})).ok()["status"]
    (condition,) = [each for each in status["conditions"] if each["type"] == "Ready"]
    assert (condition["lastProbeTime"], condition["lastTransitionTime"]) == (None, None)
    (container,) = status["containerStatuses"]
    assert container["state"] == {"terminated": {"exitCode": 1, "startedAt": None, "finishedAt": None}}
    assert container["lastState"] == {"running": {"startedAt": None}}


async def test_phase_of_a_volume(api: Api, namespace: str) -> None:
    """A volume says when it came into its phase."""
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    wanted = {"metadata": {"name": f"pv-{namespace}"}, "spec": spec}
    status = (await api.post("/api/v1/persistentvolumes", wanted, dryRun="All")).ok()["status"]
    assert status["phase"] == "Pending"
    assert status["lastPhaseTransitionTime"].endswith("Z")


async def test_annotations_count(api: Api, namespace: str) -> None:
    """Annotations of a deployment count as a new generation, labels do not."""
    await api.post(deployments(namespace), deployment(paused=True))
    path = f"{deployments(namespace)}/a"
    labelled = (await api.merge(path, {"metadata": {"labels": {"x": "y"}}}, dryRun="All")).ok()
    annotated = (await api.merge(path, {"metadata": {"annotations": {"x": "y"}}}, dryRun="All")).ok()
    assert (labelled["metadata"]["generation"], annotated["metadata"]["generation"]) == (1, 2)


async def test_deprecated_kind(api: Api, namespace: str) -> None:
    """A kind that is deprecated warns whoever uses it."""
    answer = await api.get(f"/api/v1/namespaces/{namespace}/endpoints")
    assert answer.warnings == '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
