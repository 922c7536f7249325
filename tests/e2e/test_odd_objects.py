"""Objects that users may write, however odd, harm nobody else: whatever admission takes, normal pods run beside it."""

from __future__ import annotations

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from spinney.api.core import Namespace, Node, Pod
from spinney.api.kai import PodGroup, Queue, Topology
from spinney.api.meta import Json, Object
from spinney.embedded.nodes.profile import Profile
from spinney.kube.errors import ApiError
from spinney.sim.loop import run_virtual
from tests import make
from tests.e2e.installation import Installed, installed

TEXTS = (
    "", "a", "no-such", "default-queue", "default-parent-queue", "odd-1", "kubernetes.io/rack", "-1", "0", "0.5", "1.0",
    "2", "1e3", "NaN", "0.00001", "9" * 20, "train", "build", "0s", "-5s", "5x", "1h", "true",
)  # fmt: skip
NUMBERS = (-5, -1, 0, 1, 2, 3, 100, 2**31 - 1)
ANNOTATIONS = (
    "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices", "received-resource-type", "kai.scheduler/topology",
    "kai.scheduler/topology-required-placement", "kai.scheduler/topology-preferred-placement",
    "kai.scheduler/stale-grace-period", "kai.scheduler/batch-min-member", "kai.scheduler/preemption-delay",
)  # fmt: skip
LABELS = (
    "kai.scheduler/queue", "kai.scheduler/subgroup-name", "kai.scheduler/preemptibility", "priorityClassName",
    "kai.scheduler/node-pool", "runai-gpu-group", "grove.io/podgang",
)  # fmt: skip
NODE_LABELS = ("nvidia.com/gpu.memory", "nvidia.com/gpu.count", "kubernetes.io/rack", "nvidia.com/mig.strategy")
TOPOLOGY_KEYS = ("no/such", "kubernetes.io/rack", "kubernetes.io/hostname")

texts, numbers = st.sampled_from(TEXTS), st.sampled_from(NUMBERS)
names = st.sampled_from([f"odd-{index}" for index in range(6)])
amounts = st.sampled_from((-2, -1, 0, 0.5, 1, 3, 1e18))


def some(of: tuple[str, ...]) -> st.SearchStrategy[dict[str, str]]:
    """Up to three of some keys, each with any text."""
    return st.dictionaries(st.sampled_from(of), texts, max_size=3)


near = st.fixed_dictionaries(
    {}, optional={"topology": names, "requiredTopologyLevel": texts, "preferredTopologyLevel": texts}
)
share = st.fixed_dictionaries({}, optional={"quota": amounts, "limit": amounts, "overQuotaWeight": amounts})
subgroup = st.fixed_dictionaries(
    {"name": st.sampled_from(("a", "b", "c"))},
    optional={"minMember": numbers, "parent": st.sampled_from(("a", "b", "zz")), "topologyConstraint": near},
)
spread = st.fixed_dictionaries(
    {
        "maxSkew": st.just(1),
        "topologyKey": st.sampled_from(TOPOLOGY_KEYS),
        "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": st.just({}),
    }
)
term = st.fixed_dictionaries({"topologyKey": st.sampled_from(TOPOLOGY_KEYS), "labelSelector": st.just({})})
rule = st.builds(lambda chosen: {"requiredDuringSchedulingIgnoredDuringExecution": [chosen]}, term)
requests = st.fixed_dictionaries(
    {}, optional={"nvidia.com/gpu": st.sampled_from(("0", "1", "100")), "cpu": st.sampled_from(("1m", "1", "900"))}
)


def with_meta(name: str, spec: Json, labels: Json, annotations: Json) -> Json:
    """An object of a name."""
    return {"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": spec}


@st.composite
def queues(draw: st.DrawFn) -> tuple[type[Object], Json]:
    """A queue somewhere in the tree, or in a ring."""
    spec: Json = {"resources": {kind: draw(share) for kind in ("cpu", "memory", "gpu")}, "parentQueue": draw(names)}
    return Queue, with_meta(draw(names), spec, draw(some(LABELS)), {})


@st.composite
def topologies(draw: st.DrawFn) -> tuple[type[Object], Json]:
    """A topology whose labels some nodes have, or none."""
    keys = draw(st.lists(st.sampled_from(TOPOLOGY_KEYS), min_size=1, max_size=3))
    return Topology, with_meta(draw(names), {"levels": [{"nodeLabel": key} for key in keys]}, {}, {})


@st.composite
def groups(draw: st.DrawFn) -> tuple[type[Object], Json]:
    """A group that pods may say they belong to."""
    wishes = {"minMember": numbers, "minSubGroup": numbers, "topologyConstraint": near, "stalenessGracePeriod": texts}
    tree = {"subGroups": st.lists(subgroup, max_size=3), "priorityClassName": texts}
    spec = draw(st.fixed_dictionaries({"queue": st.one_of(names, texts)}, optional={**wishes, **tree}))
    return PodGroup, with_meta(draw(names), spec, {}, draw(some(ANNOTATIONS)))


@st.composite
def pods(draw: st.DrawFn) -> tuple[type[Object], Json]:
    """A pod of ours or of somebody else, with odd wishes."""
    request = draw(requests)
    spec: Json = {
        "schedulerName": draw(st.sampled_from(("kai-scheduler", "kai-scheduler", "default-scheduler", "odd"))),
        "containers": [{"name": "main", "image": "x", "resources": {"requests": request, "limits": request}}],
        "topologySpreadConstraints": draw(st.lists(spread, max_size=1)),
        "affinity": draw(st.fixed_dictionaries({}, optional={"podAffinity": rule, "podAntiAffinity": rule})),
    }
    annotations = {**draw(some(ANNOTATIONS)), **draw(st.fixed_dictionaries({}, optional={"pod-group-name": names}))}
    body = with_meta("", spec, {"kai.scheduler/queue": "default-queue", **draw(some(LABELS))}, annotations)
    return Pod, {**body, "metadata": {**body["metadata"], "generateName": "odd-"}}


@st.composite
def nodes(draw: st.DrawFn) -> tuple[type[Object], Json]:
    """A user's own simulated node."""
    built = make.node(draw(names), draw(st.sampled_from((0, 1, 8)))).annotate("kwok.x-k8s.io/node", "fake").build()
    built["metadata"]["labels"] = {**built["metadata"].get("labels", {}), **draw(some(NODE_LABELS))}
    return Node, built


objects = st.lists(st.one_of(queues(), topologies(), groups(), pods(), pods(), nodes()), min_size=20, max_size=60)


@settings(max_examples=6, deadline=None)
@given(objects)
def test_odd_objects_harm_nobody_else(odd: list[tuple[type[Object], Json]]) -> None:
    """The API takes or refuses them, no component fails on them, and a normal pod of each scheduler still runs."""

    async def test() -> None:
        async with installed(Profile(count=2, gpus=2, racks=1, blocks=1), stand_in=True) as held:
            with capture_logs() as logged:
                for kind, body in odd:
                    await offer(held, kind, body)
                await held.queue("normal-above", quota=-1)
                await held.queue("normal", "normal-above", quota=-1)
                await held.client.create(Namespace, {"metadata": {"name": "normal"}})
                for scheduler in ("kai-scheduler", "default-scheduler"):
                    built = make.pod(scheduler, "normal").scheduler(scheduler).label("kai.scheduler/queue", "normal")
                    await held.client.create(Pod, built.build(), "normal")
                await held.eventually(partial(both_run, held))
            assert [line for line in logged if line["log_level"] == "error"] == []

    run_virtual(test(), limit=7200)


async def both_run(held: Installed) -> bool:
    """Whether the normal pods run."""
    return len(await held.running(namespace="normal")) == 2


async def offer(held: Installed, kind: type[Object], body: Json) -> None:
    """Create an object, if the API takes it; only a fault of the API's own is one."""
    try:
        await held.client.create(kind, body, "default" if kind.resource.namespaced else "")
    except ApiError as error:
        if error.code >= 500:
            raise
