"""Kinds that are served at two versions with different members, and kept once."""

from __future__ import annotations

from tests.api_behaviour.wire import Api, Json


def core(namespace: str) -> str:
    """Events of the core group."""
    return f"/api/v1/namespaces/{namespace}/events"


def newer(namespace: str) -> str:
    """The same events as `events.k8s.io` shows them."""
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def autoscalers(namespace: str, version: str) -> str:
    """Autoscalers at a version."""
    return f"/apis/autoscaling/{version}/namespaces/{namespace}/horizontalpodautoscalers"


async def test_core_event(api: Api, namespace: str) -> None:
    """An event of the core group shows in the newer one under the names that it uses, and has all its times."""
    about = {"kind": "Pod", "namespace": namespace, "name": "p"}
    event = {
        "metadata": {"name": "e"},
        "involvedObject": about,
        "reason": "R",
        "message": "m",
        "type": "Normal",
        "count": 3,
    }
    made = (await api.post(core(namespace), event)).ok()
    assert (made["eventTime"], made["firstTimestamp"], made["lastTimestamp"]) == (None, None, None)
    shown = (await api.get(f"{newer(namespace)}/e")).ok()
    assert (shown["apiVersion"], shown["regarding"], shown["note"]) == ("events.k8s.io/v1", about, "m")
    assert (shown["deprecatedCount"], shown["deprecatedFirstTimestamp"]) == (3, None)
    assert not {"involvedObject", "message", "count", "source", "reportingController"} & set(shown)


async def test_newer_event(api: Api, namespace: str) -> None:
    """An event of the newer group shows in the core one, and both can be selected by what they are about."""
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "namespace": namespace, "name": "p"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "Binding",
        "reason": "R",
        "note": "m",
        "type": "Normal",
        "reportingController": "example.com/c",
        "reportingInstance": "c-0",
    }
    (await api.post(newer(namespace), event)).ok()
    listed = (await api.get(core(namespace), fieldSelector="involvedObject.name=p")).ok()["items"]
    assert [(each["message"], each["reportingComponent"]) for each in listed] == [("m", "example.com/c")]
    same = (await api.get(newer(namespace), fieldSelector="regarding.name=p")).ok()["items"]
    assert [each["metadata"]["uid"] for each in same] == [listed[0]["metadata"]["uid"]]


def autoscaler(**spec: object) -> Json:
    """An autoscaler of a deployment that is not there."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    return {"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target, **spec}}


async def test_old_autoscaler(api: Api, namespace: str) -> None:
    """The processor target of an old autoscaler is a metric of the newer version."""
    made = (await api.post(autoscalers(namespace, "v1"), autoscaler(targetCPUUtilizationPercentage=60))).ok()
    assert (made["apiVersion"], made["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 60)
    spec = (await api.get(f"{autoscalers(namespace, 'v2')}/a")).ok()["spec"]
    target = {"type": "Utilization", "averageUtilization": 60}
    assert spec["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert "targetCPUUtilizationPercentage" not in spec


async def test_new_autoscaler(api: Api, namespace: str) -> None:
    """A newer autoscaler's processor metric is the old version's target."""
    (await api.post(autoscalers(namespace, "v2"), autoscaler())).ok()
    spec = (await api.get(f"{autoscalers(namespace, 'v1')}/a")).ok()["spec"]
    assert spec["targetCPUUtilizationPercentage"] == 80
    assert "metrics" not in spec


async def test_rows(api: Api, namespace: str) -> None:
    """Both versions print the same rows."""
    about = {"kind": "Pod", "namespace": namespace, "name": "p"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "R", "message": "m", "type": "Normal"}
    (await api.post(core(namespace), event)).ok()
    table = api.with_headers(accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    for path in (core(namespace), newer(namespace)):
        (row,) = (await table.get(path)).ok()["rows"]
        assert (row["cells"][1:4], row["cells"][6]) == (["Normal", "R", "pod/p"], "m")
