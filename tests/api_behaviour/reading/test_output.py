"""Other shapes of the same answer: tables, metadata only, what is not acceptable."""

from __future__ import annotations

import pytest

from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import find_server
from spinney.kube.client.transport import Request
from tests import make
from tests.api_behaviour.deployments import deployment
from tests.api_behaviour.media_types import TABLE
from tests.api_behaviour.wire import Api, Json
from tests.worlds import Cluster

PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

COLUMNS = {
    "/api/v1/namespaces/{ns}/pods": "Name|Ready|Status|Restarts|Age|IP|Node|Nominated Node|Readiness Gates",
    "/api/v1/nodes": (
        "Name|Status|Roles|Age|Version|Internal-IP|External-IP|OS-Image|Kernel-Version|Container-Runtime"
    ),
    "/api/v1/namespaces": "Name|Status|Age",
    "/api/v1/namespaces/{ns}/configmaps": "Name|Data|Age",
    "/api/v1/namespaces/{ns}/secrets": "Name|Type|Data|Age",
    "/api/v1/namespaces/{ns}/services": "Name|Type|Cluster-IP|External-IP|Port(s)|Age|Selector",
    "/api/v1/namespaces/{ns}/serviceaccounts": "Name|Age",
    "/api/v1/namespaces/{ns}/events": "Last Seen|Type|Reason|Object|Subobject|Source|Message|First Seen|Count|Name",
    "/api/v1/namespaces/{ns}/persistentvolumeclaims": (
        "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode"
    ),
    "/apis/apps/v1/namespaces/{ns}/deployments": "Name|Ready|Up-to-date|Available|Age|Containers|Images|Selector",
    "/apis/apps/v1/namespaces/{ns}/replicasets": "Name|Desired|Current|Ready|Age|Containers|Images|Selector",
    "/apis/apps/v1/namespaces/{ns}/statefulsets": "Name|Ready|Age|Containers|Images",
    "/apis/batch/v1/namespaces/{ns}/jobs": "Name|Status|Completions|Duration|Age|Containers|Images|Selector",
    "/apis/batch/v1/namespaces/{ns}/cronjobs": (
        "Name|Schedule|Timezone|Suspend|Active|Last Schedule|Age|Containers|Images|Selector"
    ),
    "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets": (
        "Name|Min Available|Max Unavailable|Allowed Disruptions|Age"
    ),
    "/apis/scheduling.k8s.io/v1/priorityclasses": "Name|Value|Global-Default|Age|PreemptionPolicy",
    "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases": "Name|Holder|Age",
    "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers": (
        "Name|Reference|Targets|MinPods|MaxPods|Replicas|Age"
    ),
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles": "Name|Created At",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings": "Name|Role|Age|Users|Groups|ServiceAccounts",
    "/apis/storage.k8s.io/v1/storageclasses": (
        "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age"
    ),
    "/apis/scheduling.k8s.io/v1alpha1/namespaces/{ns}/workloads": "Name|Age",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": "Name|Created At",
}


@pytest.mark.parametrize("path", COLUMNS)
async def test_columns(api: Api, namespace: str, path: str) -> None:
    """Every kind has the columns that kubectl shows."""
    body = (await api.with_headers(accept=TABLE).get(path.replace("{ns}", namespace))).ok()
    assert (body["kind"], body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in body["columnDefinitions"]] == COLUMNS[path].split("|")


async def test_column_definition(api: Api, namespace: str) -> None:
    """A column says type, format, priority and what it means."""
    body = (await api.with_headers(accept=TABLE).get(f"/api/v1/namespaces/{namespace}/pods")).ok()
    first, *_, last = body["columnDefinitions"]
    assert (first["name"], first["type"], first["format"], first["priority"]) == ("Name", "string", "name", 0)
    assert first["description"].startswith("Name must be unique within a namespace.")
    assert (last["name"], last["priority"]) == ("Readiness Gates", 1)


async def test_pod_row(api: Api, namespace: str) -> None:
    """A pod's row shows readiness, phase, restarts and node; the row carries its metadata."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(path, make.pod("a", namespace).build())
    body = (await api.with_headers(accept=TABLE).get(path)).ok()
    (row,) = body["rows"]
    name, ready, status, restarts, age, *wide = row["cells"]
    assert (name, ready, status, restarts) == ("a", "0/1", "Pending", "0")
    assert age.endswith("s")
    assert wide == ["<none>", "<none>", "<none>", "<none>"]
    assert (row["object"]["kind"], row["object"]["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert row["object"]["metadata"]["name"] == "a"


def main(restarts: int = 0, **state: Json) -> Json:
    """The status of the pod's container in a state."""
    return {"containerStatuses": [{"name": "main", "restartCount": restarts, "state": state}]}


def init(**state: Json) -> Json:
    """The status of the pod's init container in a state, before anything else has begun."""
    return {"phase": "Pending", "initContainerStatuses": [{"name": "init", "state": state}]}


POD_STATES: dict[str, tuple[Json, str]] = {
    "gated": ({}, "SchedulingGated"),
    "running": ({"phase": "Running", **main(running={})}, "Running"),
    "waiting": ({"phase": "Pending", **main(waiting={"reason": "ContainerCreating"})}, "ContainerCreating"),
    "crash-loop": ({"phase": "Running", **main(3, waiting={"reason": "CrashLoopBackOff"})}, "CrashLoopBackOff"),
    "completed": ({"phase": "Succeeded", **main(terminated={"reason": "Completed", "exitCode": 0})}, "Completed"),
    "error": ({"phase": "Failed", **main(terminated={"reason": "Error", "exitCode": 1})}, "Error"),
    "exit-code": ({"phase": "Failed", **main(terminated={"exitCode": 3})}, "ExitCode:3"),
    "signal": ({"phase": "Failed", **main(terminated={"exitCode": 3, "signal": 9})}, "Signal:9"),
    "reason": ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
    "init": (init(running={}), "Init:0/1"),
    "init-waits": (init(waiting={"reason": "PodInitializing"}), "Init:0/1"),
    "init-fails": (init(terminated={"reason": "Error", "exitCode": 1}), "Init:Error"),
}


@pytest.mark.parametrize("case", POD_STATES)
async def test_pod_state(api: Api, namespace: str, case: str) -> None:
    """The status column says what the pod's containers are at."""
    status, expected = POD_STATES[case]
    path = f"/api/v1/namespaces/{namespace}/pods"
    builder = make.pod("a", namespace)
    wanted = (builder.gate("x.example/g") if case == "gated" else builder).build()
    if case.startswith("init"):
        wanted["spec"]["initContainers"] = [{"name": "init", "image": "busybox"}]
    await api.post(path, wanted)
    if status:
        (await api.merge(f"{path}/a/status", {"status": status})).ok()
    body = (await api.with_headers(accept=TABLE).get(f"{path}/a")).ok()
    assert body["rows"][0]["cells"][2] == expected


async def test_terminating_row(api: Api, namespace: str) -> None:
    """A pod that is being deleted shows as Terminating."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(path, make.pod("a", namespace).on("n").build())
    await api.delete(f"{path}/a")
    assert (await api.with_headers(accept=TABLE).get(f"{path}/a")).ok()["rows"][0]["cells"][2] == "Terminating"


async def test_table_of_one(api: Api, namespace: str) -> None:
    """One object is a table of one row."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await api.post(path, deployment(paused=True))
    body = (await api.with_headers(accept=TABLE).get(f"{path}/a")).ok()
    cells = body["rows"][0]["cells"]
    assert cells[:4] == ["a", "0/0", 0, 0]
    assert cells[5:] == ["one,two", "first,second", "app=a"]


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Object", "Pod"), ("Metadata", "PartialObjectMetadata")]
)
async def test_include_object(api: Api, namespace: str, include: str, kind: str | None) -> None:
    """includeObject says how much of the object a row carries."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(path, make.pod("a", namespace).build())
    body = (await api.with_headers(accept=TABLE).get(path, includeObject=include)).ok()
    included = body["rows"][0].get("object")
    assert (included or {}).get("kind") == kind


async def test_table_list_metadata(api: Api, namespace: str) -> None:
    """A table has the list's version and continuation."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    for name in ("a", "b"):
        await api.post(path, make.pod(name, namespace).build())
    body = (await api.with_headers(accept=TABLE).get(path, limit=1)).ok()
    assert len(body["rows"]) == 1
    assert body["metadata"]["continue"]
    assert body["metadata"]["remainingItemCount"] == 1
    assert body["metadata"]["resourceVersion"]


async def test_partial(api: Api, namespace: str) -> None:
    """Metadata only, of one object."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = (await api.post(path, make.config_map("a", k="v"))).ok()
    body = (await api.with_headers(accept=PARTIAL).get(f"{path}/a")).ok()
    assert body == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}


async def test_partial_list(api: Api, namespace: str) -> None:
    """Metadata only, of a list, whose items say their kind."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    await api.post(path, {"metadata": {"name": "a"}})
    body = (await api.with_headers(accept=PARTIALS).get(path)).ok()
    assert (body["kind"], body["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert set(body["items"][0]) == {"kind", "apiVersion", "metadata"}
    assert body["metadata"]["resourceVersion"]


async def test_partial_of_writes(api: Api, namespace: str) -> None:
    """A patch can answer with metadata only."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.post(path, make.config_map("a", k="v"))
    body = (await api.with_headers(accept=PARTIAL).merge(f"{path}/a", {"metadata": {"labels": {"x": "y"}}})).ok()
    assert (body["kind"], body["metadata"]["labels"]) == ("PartialObjectMetadata", {"x": "y"})


@pytest.mark.parametrize("accept", ["text/html", "application/*"])
async def test_not_acceptable(api: Api, namespace: str, accept: str) -> None:
    """A shape that the server does not speak is 406."""
    answer = await api.with_headers(accept=accept).get(f"/api/v1/namespaces/{namespace}/pods")
    answer.refused(
        406,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
        "application/vnd.kubernetes.protobuf;stream=watch",
    )


async def test_unknown_shape(api: Api, namespace: str) -> None:
    """A transformation that the server does not know is 406 too, with fewer words."""
    unknown = api.with_headers(accept="application/json;as=Nothing;v=v1;g=meta.k8s.io")
    (await unknown.get(f"/api/v1/namespaces/{namespace}/pods")).refused(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf",
    )


@pytest.mark.parametrize("accept", ["*/*", "text/plain, application/json;q=0.5", "application/nothing, */*"])
async def test_acceptable(api: Api, namespace: str, accept: str) -> None:
    """Wildcards and alternatives are understood."""
    answer = await api.with_headers(accept=accept).get(f"/api/v1/namespaces/{namespace}/pods")
    assert answer.ok()["kind"] == "PodList"


async def test_pretty(api: Api, namespace: str) -> None:
    """?pretty=true indents by two spaces."""
    answer = await api.get(f"/api/v1/namespaces/{namespace}", pretty="true")
    assert answer.raw.startswith(b'{\n  "kind": "Namespace",\n  "apiVersion": "v1",\n')


async def test_compression(api: Api, namespace: str) -> None:
    """A client that takes gzip gets an answer that it can read."""
    for number in range(30):
        await api.post(f"/api/v1/namespaces/{namespace}/configmaps", make.config_map(f"m{number}", big="x" * 8000))
    body = (await api.with_headers(accept_encoding="gzip").get(f"/api/v1/namespaces/{namespace}/configmaps")).ok()
    assert len(body["items"]) >= 30


FLAGS = {
    "/apis/scheduling.k8s.io/v1/priorityclasses": ("Global-Default", {"value": 1}),
    "/apis/storage.k8s.io/v1/storageclasses": ("AllowVolumeExpansion", {"provisioner": "example.com/none"}),
}


@pytest.mark.parametrize("path", FLAGS)
async def test_flags(api: Api, namespace: str, path: str) -> None:
    """A yes or no is a boolean, not its name."""
    column, body = FLAGS[path]
    (await api.post(path, {"metadata": {"name": f"flag-{namespace}"}, **body})).ok()
    table = (await api.with_headers(accept=TABLE).get(f"{path}/flag-{namespace}")).ok()
    at = [each["name"] for each in table["columnDefinitions"]].index(column)
    assert table["rows"][0]["cells"][at] is False
    (await api.delete(f"{path}/flag-{namespace}")).ok()


async def test_meaning_of_a_column(api: Api, namespace: str) -> None:
    """A column says what it means."""
    body = (await api.with_headers(accept=TABLE).get(f"/api/v1/namespaces/{namespace}/pods")).ok()
    descriptions = {each["name"]: each["description"] for each in body["columnDefinitions"]}
    assert descriptions["Ready"] == "The aggregate readiness state of this pod for accepting traffic."
    assert descriptions["Node"].startswith("NodeName indicates in which node this pod is scheduled.")


async def test_unknown_inclusion(api: Api, namespace: str) -> None:
    """A row can carry the object, its metadata or nothing."""
    table = api.with_headers(accept=TABLE)
    (await table.get(f"/api/v1/namespaces/{namespace}/configmaps", includeObject="Half")).refused(
        400,
        "BadRequest",
        'Unable to convert to Table as requested: includeObject: Invalid value: "Half": must be '
        "'Metadata', 'Object', 'None', or empty",
    )


async def test_metadata_of_a_list_is_a_list(api: Api, namespace: str) -> None:
    """One form is for single objects, the other for lists; an empty list of metadata has no items at all."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    (await api.with_headers(accept=PARTIAL.partition(",")[0]).get(path)).refused(406, "NotAcceptable")
    body = (await api.with_headers(accept=PARTIALS).get(path)).ok()
    assert (body["kind"], body["items"]) == ("PartialObjectMetadataList", None)
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    (await api.with_headers(accept=PARTIALS.partition(",")[0]).get(account)).refused(406, "NotAcceptable")


async def test_every_answer_has_an_audit_id(cluster: Cluster) -> None:
    """The one that the client gives, or a new one."""
    client = connect(find_server(str(await cluster.world.kubeconfig())))
    try:
        named = await client.transport.send(Request("GET", "/api/v1/nodes/nope", headers={"audit-id": "mine"}))
        drawn = await client.transport.send(Request("GET", "/api/v1/nodes/nope"))
    finally:
        await client.close()
    assert (named.status, dict(named.headers)["audit-id"]) == (404, "mine")
    assert len(dict(drawn.headers)["audit-id"]) == 36
