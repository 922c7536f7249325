"""Admission as the API server meets it: refusals reach the user, templates are tried out, managed objects protected."""

from __future__ import annotations

import json

import pytest

from spinney.api.core import Pod
from spinney.api.grove import ClusterTopologyBinding, PodClique, PodCliqueSet
from spinney.api.groveconfig import Authorizer
from spinney.grove.settings import GroveConfiguration, Settings
from spinney.kube.client.transport import Request, User
from spinney.kube.errors import ApiError
from spinney.kube.manifests import webhook_resource
from tests import make
from tests.grove.stage import TOPOLOGY, Stage, sample
from tests.grove.virtual import VirtualStage, played


@played(nodes=1)
async def test_an_invalid_set_leaves_nothing_behind(stage: Stage) -> None:
    """A refused set is not stored, and nothing of it is made."""
    with pytest.raises(ApiError, match="minAvailable must not be greater than replicas"):
        await stage.apply(make.pcs("svc").clique("a", 1, 2).build())
    await stage.settle(10)
    for kind in (PodCliqueSet, PodClique, Pod):
        assert not await stage.list(kind)


@played(nodes=1)
async def test_all_mistakes_of_a_set_are_told_at_once(stage: Stage) -> None:
    """The set's own rules, those of its backend, and what the API server says about its pods."""
    built = (
        make.pcs("svc")
        .clique("a", schedulerName="volcano", topologySpreadConstraints=[{}])
        .clique("b", schedulerName="kai-scheduler", restartPolicy="Sometimes")
        .clique("c", schedulerName="volcano", containers=[{"name": "Main", "image": "x"}])
    )
    with pytest.raises(ApiError) as refusal:
        await stage.apply(built.build())
    for mistake in ("topologySpreadConstraints", "'kai-scheduler' in b", "restartPolicy", "containers[0].name"):
        assert mistake in str(refusal.value)


@played(nodes=1)
async def test_members_of_a_pod_of_another_type_were_an_internal_error(stage: Stage) -> None:
    """The CRD passes on pod specs of any shape; the checks behind it stopped at them."""
    container = {"name": "c", "image": "x"}
    for members, says in (
        ({"containers": "c"}, 'containers: Invalid value: "c": must be a list'),
        ({"containers": ["c"]}, 'containers[0]: Invalid value: "c": must be an object'),
        ({"containers": [{**container, "env": ["FOO"]}]}, "containers[0].env[0]: Invalid value"),
        ({"containers": [{**container, "resources": {"limits": ["gpu"]}}]}, "resources.limits: Invalid value"),
        ({"schedulerName": ["kai-scheduler"]}, "podSpec.schedulerName: Invalid value"),
    ):
        with pytest.raises(ApiError) as refusal:
            await stage.apply(make.pcs("svc").clique("a", **members).build())
        assert refusal.value.code == 422
        assert says in str(refusal.value)


@played(nodes=1)
async def test_a_wrong_clique_name_was_told_three_times(stage: Stage) -> None:
    """The pod of the dry run had it in its name, so its refusal named fields that no manifest has."""
    with pytest.raises(ApiError, match=r'cliques\[0\]\.name: Invalid value: "A_b"') as refusal:
        await stage.apply(make.pcs("svc").clique("A_b").build())
    assert "generateName" not in str(refusal.value)


@played(nodes=1)
async def test_applying_a_set_again_was_a_new_generation(stage: Stage) -> None:
    """kubectl sends lists as they are in the manifest; the webhook fills in the defaults again, so nothing changes."""
    built = make.pcs("svc").clique("a").build()
    await stage.apply(built)
    await stage.runs(1)
    before = await stage.client.get(PodCliqueSet, ("default", "svc"))
    same = {"spec": {"template": {"cliques": built["spec"]["template"]["cliques"]}}}
    after = await stage.client.patch(PodCliqueSet, ("default", "svc"), same)
    assert after.metadata.generation == before.metadata.generation


@played(nodes=1)
async def test_a_priority_class_that_does_not_exist_is_a_warning_at_admission(stage: Stage) -> None:
    """As with a Deployment, the set is stored; unlike there, its user hears at once that no pod will come of it."""
    built = make.pcs("svc").clique("a", 1, priorityClassName="gold").clique("b", 1).build()
    path = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"
    request = Request("POST", path, headers={"content-type": "application/json"}, body=json.dumps(built).encode())
    answer = await stage.client.transport.send(request)
    assert answer.status == 201
    assert "cliques[0].spec.podSpec.priorityClassName: PriorityClass gold does not exist" in answer.headers["warning"]
    assert "cliques[1]" not in answer.headers["warning"]


TEMPLATES = [
    ({"containers": [{"name": "main", "image": "x", "imagePullPolicyy": "Always"}]}, "imagePullPolicyy"),
    ({"containers": [{"name": "Main", "image": "x"}]}, "containers[0].name"),
    ({"restartPolicy": "Sometimes"}, "restartPolicy"),
    ({"containers": [{"name": "main", "image": "x", "resources": {"limits": {"cpu": "lots"}}}]}, "quantities"),
]


@pytest.mark.parametrize(("pod_spec", "field"), TEMPLATES)
@played(nodes=1)
async def test_a_template_that_the_api_server_would_refuse_is_refused(
    stage: Stage, pod_spec: dict[str, object], field: str
) -> None:
    """A pod template is tried out by dry-run, and its problem is told with the path in the set."""
    with pytest.raises(ApiError) as refusal:
        await stage.apply(make.pcs("svc").clique("a", **pod_spec).build())
    assert field in str(refusal.value)
    assert "spec.template.cliques[0].spec" in str(refusal.value)


@played(nodes=1)
async def test_cliques_of_different_schedulers_are_refused_by_name(stage: Stage) -> None:
    """All cliques name one scheduler; the message says which names which."""
    built = make.pcs("svc").clique("a", schedulerName="volcano").clique("b", schedulerName="kai-scheduler")
    with pytest.raises(ApiError, match="'kai-scheduler' in b; 'volcano' in a"):
        await stage.apply(built.build())


@played(nodes=1)
async def test_immutable_fields_and_topology_words_reach_the_user(stage: Stage) -> None:
    """TAS21, TAS22: updates of immutable fields, unknown topologies and deprecated fields are refused in words."""
    await stage.apply(TOPOLOGY, *sample("e2e-yaml/tas-hierarchy"))
    patch = {"spec": {"template": {"cliqueStartupType": "CliqueStartupTypeInOrder"}}}
    with pytest.raises(ApiError, match="immutable"):
        await stage.client.patch(PodCliqueSet, ("default", "tas-hierarchy"), patch)
    (legacy,) = sample("e2e-yaml/tas-host-level")
    legacy["spec"]["template"]["cliques"][0]["topologyConstraint"] = {
        "topologyName": "grove-topology",
        "packDomain": "host",
    }
    with pytest.raises(ApiError, match="packDomain is deprecated and cannot be used on new workloads"):
        await stage.apply(legacy)
    doubled = {**TOPOLOGY, "metadata": {"name": "x"}, "spec": {"levels": [{"domain": "a", "key": "k"}] * 2}}
    with pytest.raises(ApiError, match=r"spec.levels\[1\].domain: Duplicate value"):
        await stage.apply(doubled)
    bound = {**TOPOLOGY, "metadata": {"name": "y"}}
    bound["spec"] = {
        **TOPOLOGY["spec"],
        "schedulerTopologyBindings": [{"schedulerName": "nobody", "topologyReference": "t"}],
    }
    with pytest.raises(ApiError, match=r"schedulerTopologyReferences\[0\].schedulerName.*not enabled in Grove"):
        await stage.apply(bound)
    assert [binding.name for binding in (await stage.client.list(ClusterTopologyBinding)).items] == ["grove-topology"]


@played(nodes=1)
async def test_a_set_stored_while_no_webhook_was_registered_could_never_be_written_again(stage: Stage) -> None:
    """It has no defaults; to get them with the next write is no change of immutable fields."""
    client, kept = stage.client, []
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        resource = webhook_resource(kind)
        for item in json.loads((await client.call("GET", resource.path())).body)["items"]:
            kept.append((resource, {"metadata": {"name": item["metadata"]["name"]}, "webhooks": item["webhooks"]}))
            await client.delete(resource, item["metadata"]["name"])
    await stage.apply(make.pcs("svc").clique("a").build())
    for resource, body in kept:
        await client.create(resource, body)
    await client.patch(PodCliqueSet, ("default", "svc"), {"metadata": {"labels": {"a": "b"}}})
    stored = await client.get(PodCliqueSet, ("default", "svc"))
    assert stored.spec.template.cliques[0].spec.min_available == 1
    await stage.settle(60)


PROTECTED = Settings(user="operator", config=GroveConfiguration(authorizer=Authorizer(enabled=True)))


@played(nodes=10, settings=PROTECTED)
async def test_managed_objects_are_protected(stage: VirtualStage) -> None:
    """The authorizer lets only the operator change what it manages; pods may be deleted; a set can opt out."""
    await stage.apply(*sample("e2e-yaml/workload1"))
    await stage.runs(10)
    user = stage.cluster.client(User("alice", ("system:masters", "system:authenticated")))
    patch = {"metadata": {"labels": {"mine": "yes"}}}
    with pytest.raises(ApiError, match=r"managed by the Grove operator for PodCliqueSet workload1"):
        await user.patch(PodClique, ("default", "workload1-0-pc-a"), patch)
    (first, *_) = await stage.pods("workload1-0-pc-a")
    await user.delete(Pod, ("default", first.name))
    annotation = {"grove.io/disable-managed-resource-protection": "true"}
    await user.patch(PodCliqueSet, ("default", "workload1"), {"metadata": {"annotations": annotation}})
    await stage.settle(5)
    await user.patch(PodClique, ("default", "workload1-0-pc-a"), patch)
    await stage.runs(10)
