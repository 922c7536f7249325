"""What the API server asks about pods, and what it is told: on their way in, and when they change."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable
from typing import Any

import pytest

from spinney.api import labels
from spinney.api.core import Namespace
from spinney.api.meta import Json
from spinney.embedded.apiserver.write.json_patch import apply_json_patch
from spinney.services.admission.component import COMPONENT as ADMISSION
from spinney.services.admission.settings import AdmissionSettings
from spinney.services.admission.webhooks import pod_mutation, pod_validation, queue_review
from tests import make
from tests.services.stage import Stage, stage
from tests.virtual_time import virtual

SHARING = AdmissionSettings(gpu_sharing=True)
STRICT = AdmissionSettings(gpu_sharing=True, block_visible_devices=True)
VISIBLE = labels.ENV_VISIBLE_DEVICES


def pod(queue: str = "q", **annotations: str) -> Json:
    """A pod for our scheduler."""
    return make.pod("p").scheduler("kai-scheduler").label(labels.QUEUE, queue).annotations(**annotations).build()


def seeing(value: str, *, container: int = 0, **annotations: str) -> Json:
    """A pod with two containers, of which one says which devices it wants to see."""
    document = pod(**annotations)
    document["spec"]["containers"].append({"name": "side", "image": "x"})
    document["spec"]["containers"][container]["env"] = [{"name": VISIBLE, "value": value}]
    return document


class Asked:
    """The API server's side of the reviews."""

    def __init__(self, world: Stage) -> None:
        runtime = world.host.runtimes[ADMISSION.name]
        self._mutate, self._validate = pod_mutation(runtime), pod_validation(runtime)

    async def create(
        self, document: Json, user: str = "eve", namespace: str = "default"
    ) -> tuple[Json, str, list[str]]:
        """The pod as it is stored, why it is refused, and the warnings."""
        request = {"operation": "CREATE", "object": document, "namespace": namespace, "userInfo": {"username": user}}
        changed = await self._mutate(request)
        if "patch" in changed:
            document = apply_json_patch(document, json.loads(base64.b64decode(changed["patch"])))
        answer = await self._validate({**request, "object": document})
        return document, answer.get("status", {}).get("message", ""), answer.get("warnings", [])

    async def update(self, old: Json, new: Json, user: str = "eve") -> str:
        """Why a change is refused."""
        request = {"operation": "UPDATE", "object": new, "oldObject": old, "namespace": "default"}
        answer = await self._validate({**request, "userInfo": {"username": user}})
        return str(answer.get("status", {}).get("message", ""))


async def refusals(settings: AdmissionSettings, pods: Iterable[Json]) -> list[str]:
    """Why each of some pods is refused at its creation."""
    async with stage((ADMISSION, settings)) as world:
        asked = Asked(world)
        return [(await asked.create(document))[1] for document in pods]


@virtual
async def test_pods_of_other_schedulers_are_left_alone() -> None:
    """Whatever they ask for."""
    async with stage((ADMISSION, SHARING)) as world:
        theirs = make.pod("p").annotate(labels.GPU_FRACTION, "7").build()
        assert await Asked(world).create(theirs) == (theirs, "", [])


@virtual
async def test_only_the_container_that_shares_the_gpu_may_see_it() -> None:
    """Devices chosen by hand are refused in any other container, also of a pod that shares a GPU."""
    table = [
        (seeing("all"), "container main: NVIDIA_VISIBLE_DEVICES may only be 'void' or 'none'"),
        (seeing("0,1", container=1), "container side: NVIDIA_VISIBLE_DEVICES may only be 'void' or 'none'"),
        (seeing("all", container=1, gpu_fraction="0.5"), "container side: NVIDIA_VISIBLE_DEVICES may only"),
        (seeing("all", gpu_fraction="0.5"), ""),
        (seeing("void"), ""),
        (seeing("none"), ""),
    ]
    for said, (_, expected) in zip(await refusals(STRICT, [row[0] for row in table]), table, strict=True):
        assert said.startswith(expected)
        assert bool(said) == bool(expected)
    assert await refusals(SHARING, [row[0] for row in table]) == [""] * len(table)


@virtual
async def test_containers_without_gpus_see_none() -> None:
    """`void` goes into those that asked for no whole GPU and no part of one."""
    async with stage((ADMISSION, STRICT)) as world:
        both = pod(gpu_fraction="0.5")
        both["spec"]["containers"].append({"name": "side", "image": "x"})
        both["spec"]["initContainers"] = [{"name": "mig", "image": "x"}]
        both["spec"]["initContainers"][0]["resources"] = {"limits": {"nvidia.com/mig-1g.5gb": "1"}}
        admitted, _, _ = await Asked(world).create(both)
        seen = {
            each["name"]: _seen(each) for each in (*admitted["spec"]["containers"], *admitted["spec"]["initContainers"])
        }
        assert seen["side"] == "void"
        assert seen["mig"] is None
        assert "configMapKeyRef" in str(seen["main"])


def _seen(container: Json) -> Any:
    return next((e.get("value") or e.get("valueFrom") for e in container.get("env", []) if e["name"] == VISIBLE), None)


@virtual
async def test_the_memory_limit_is_wired_where_it_is_told() -> None:
    """An optional reference beside the others, for whatever enforces it."""
    for settings, wired in ((SHARING, False), (AdmissionSettings(gpu_sharing=True, memory_limit=True), True)):
        async with stage((ADMISSION, settings)) as world:
            admitted, _, _ = await Asked(world).create(pod(gpu_fraction="0.5"))
            names = [variable["name"] for variable in admitted["spec"]["containers"][0]["env"]]
            assert (labels.ENV_DEVICE_MEMORY_LIMIT in names) == wired


@virtual
async def test_a_pod_that_is_already_there_stays_editable() -> None:
    """What was let in under other settings may still change in other ways; new mistakes are refused."""
    async with stage((ADMISSION, AdmissionSettings())) as world:
        asked = Asked(world)
        old = pod(gpu_fraction="0.5")
        assert await asked.update(old, {**old, "metadata": {**old["metadata"], "finalizers": []}}) == ""
        assert "GPU sharing is disabled" in await asked.update(pod(), old)


@virtual
async def test_a_namespace_can_name_the_queue_of_its_pods() -> None:
    """Its label goes to pods that name none; those that name a queue or a project keep to it."""
    async with stage((ADMISSION, SHARING)) as world:
        marks = {labels.QUEUE: "team-queue"}
        await world.client.create(Namespace, {"metadata": {"name": "team", "labels": marks}})
        await asyncio.sleep(1)
        asked = Asked(world)
        bare = make.pod("p").scheduler("kai-scheduler")
        assert (await asked.create(bare.build(), namespace="team"))[0]["metadata"]["labels"] == {
            labels.QUEUE: "team-queue"
        }
        assert (await asked.create(pod("mine"), namespace="team"))[0]["metadata"]["labels"] == {labels.QUEUE: "mine"}
        project = make.pod("p").scheduler("kai-scheduler").label(labels.PROJECT, "x").build()
        assert (await asked.create(project, namespace="team"))[0] == project
        assert (await asked.create(bare.build()))[0] == bare.build()


@pytest.mark.parametrize(("scheduler", "queue", "ours"), [("", "q", True), ("", "", False), ("volcano", "q", False)])
@virtual
async def test_queued_pods_can_be_adopted(scheduler: str, queue: str, ours: bool) -> None:
    """Where Config says so, a pod with a queue and no scheduler of its own becomes ours."""
    settings = AdmissionSettings(adopt_queued_pods=True)
    async with stage((ADMISSION, settings)) as world:
        built = make.pod("p").scheduler(scheduler or "default-scheduler")
        admitted, _, _ = await Asked(world).create((built.label(labels.QUEUE, queue) if queue else built).build())
        assert (admitted["spec"]["schedulerName"] == "kai-scheduler") == ours


@virtual
async def test_warnings_tell_why_a_pod_will_wait() -> None:
    """A queue that is not there, or that has queues below it, stops nobody."""
    async with stage((ADMISSION, SHARING)) as world:
        await world.queue("child", "q")
        await asyncio.sleep(1)
        asked = Asked(world)
        assert (await asked.create(pod("nowhere")))[1:] == (
            "",
            ["queue nowhere does not exist; the pod waits until it does"],
        )
        assert "has queues below it" in (await asked.create(pod("q")))[2][0]
        assert (await asked.create(pod("child")))[1:] == ("", [])


async def may_use(world: Stage, name: str, subject: Json) -> None:
    """Grant the use of one queue."""
    rule = {"apiGroups": ["scheduling.run.ai"], "resources": ["queues"], "resourceNames": [name], "verbs": ["use"]}
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    await world.client.call("POST", f"{rbac}/clusterroles", body={"metadata": {"name": "use"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "use"}
    binding = {"metadata": {"name": "use"}, "roleRef": reference, "subjects": [subject]}
    await world.client.call("POST", f"{rbac}/clusterrolebindings", body=binding)


REVIEWED = AdmissionSettings(check_queue_access=True)


@virtual
async def test_who_may_use_a_queue_is_asked_of_the_api_server() -> None:
    """For the queue that the pod names, at its creation and when it moves to another one."""
    async with stage((ADMISSION, REVIEWED)) as world:
        await world.queue("other")
        await may_use(world, "q", {"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"})
        asked = Asked(world)
        assert (await asked.create(pod("q")))[1] == ""
        refusal = "user 'eve' may not use queue 'other'"
        assert (await asked.create(pod("other")))[1].startswith(refusal)
        assert (await asked.update(pod("q"), pod("other"))).startswith(refusal)
        assert await asked.update(pod("other"), pod("other")) == ""
        unnamed = make.pod("p").scheduler("kai-scheduler").build()
        assert "label kai.scheduler/queue must name one" in (await asked.create(unnamed))[1]


@virtual
async def test_the_account_of_a_workload_stands_for_its_maker() -> None:
    """Pods that a controller sends are let in where the account that they run as may use the queue."""
    async with stage((ADMISSION, REVIEWED)) as world:
        await may_use(world, "q", {"kind": "ServiceAccount", "name": "trainer", "namespace": "default"})
        asked = Asked(world)
        controller = "system:serviceaccount:kube-system:job-controller"
        theirs = pod("q")
        assert "nor to the pod's service account 'default'" in (await asked.create(theirs, controller))[1]
        theirs["spec"]["serviceAccountName"] = "trainer"
        assert (await asked.create(theirs, controller))[1] == ""


def group(queue: str) -> Json:
    """A PodGroup in a queue."""
    return {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"queue": queue, "minMember": 1}}


def gang_set(on_set: str, on_clique: str = "") -> Json:
    """A PodCliqueSet that names queues on itself and on its clique."""
    clique = {"name": "c", "annotations": {labels.QUEUE: on_clique} if on_clique else {}}
    metadata = {"name": "s", "labels": {labels.QUEUE: on_set}}
    return {"kind": "PodCliqueSet", "metadata": metadata, "spec": {"template": {"cliques": [clique]}}}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (None, group("q"), ""),
        (None, group("rich"), "user 'eve' may not use queue 'rich'"),
        (group("q"), group("rich"), "user 'eve' may not use queue 'rich'"),
        (group("rich"), group("rich"), ""),
        (None, gang_set("q"), ""),
        (gang_set("q"), gang_set("rich"), "user 'eve' may not use queue 'rich'"),
        (gang_set("q"), gang_set("q", "rich"), "user 'eve' may not use queue 'rich'"),
        (gang_set("rich"), gang_set("rich"), ""),
    ],
)
@virtual
async def test_a_group_was_moved_to_a_queue_that_its_sender_may_not_use(old: Json | None, new: Json, why: str) -> None:
    """Pods were asked about, and the group or set above them was not."""
    async with stage((ADMISSION, REVIEWED)) as world:
        await may_use(world, "q", {"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"})
        review = queue_review(world.host.runtimes[ADMISSION.name])
        request = {"object": new, "oldObject": old, "userInfo": {"username": "eve"}}
        answer = await review(request)
        assert answer.get("status", {}).get("message", "").startswith(why)
        assert answer["allowed"] is not bool(why)
        ours = await review({**request, "userInfo": {"username": "ours", "groups": ["system:masters"]}})
        assert ours["allowed"]


def sharing(groups: str = "", **annotations: str) -> Json:
    """A pod that shares a GPU of a group."""
    document = pod(**{"gpu_fraction": "0.9", **annotations})
    document["metadata"]["labels"] |= {labels.GPU_GROUP: groups} if groups else {}
    return document


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (sharing(), sharing(gpu_fraction="0.01"), "annotation gpu-fraction says what the pod asks of GPUs"),
        (pod(), sharing(), "annotation gpu-fraction says what the pod asks of GPUs"),
        (sharing("a"), sharing(), "labels runai-gpu-group name the shared GPUs of a pod"),
        (sharing("a"), sharing("b"), "labels runai-gpu-group name the shared GPUs of a pod"),
        (sharing("a"), sharing("a", note="x"), ""),
    ],
)
@virtual
async def test_a_pod_that_runs_gave_back_its_gpu_on_paper_and_kept_it(old: Json, new: Json, why: str) -> None:
    """Its share and its devices were what its labels and annotations said, which its maker may edit."""
    async with stage((ADMISSION, SHARING)) as world:
        assert (await Asked(world).update(old, new)).startswith(why)
        assert (await Asked(world).update(new, new)) == ""


@virtual
async def test_only_who_binds_pods_names_their_shared_gpus() -> None:
    """At their creation, too: the label holds the device for as long as the pod runs."""
    async with stage((ADMISSION, SHARING)) as world:
        asked = Asked(world)
        assert (await asked.create(sharing("a")))[1].startswith("labels runai-gpu-group name the shared GPUs")
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        rule = {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}
        await world.client.call("POST", f"{rbac}/clusterroles", body={"metadata": {"name": "bind"}, "rules": [rule]})
        subject = {"kind": "User", "name": "binder", "apiGroup": "rbac.authorization.k8s.io"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bind"}
        binding = {"metadata": {"name": "bind"}, "roleRef": reference, "subjects": [subject]}
        await world.client.call("POST", f"{rbac}/clusterrolebindings", body=binding)
        assert await asked.update(sharing(), sharing("a"), "binder") == ""
