"""The platform operator on the embedded API: what it makes, keeps, changes, removes and says."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
import yaml

from spinney.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from spinney.api.apps import Deployment
from spinney.api.core import ConfigMap, Service, ServiceAccount
from spinney.api.kai import Config, SchedulingShard
from spinney.api.kaiconfig import ConfigSpec
from spinney.api.meta import Json, convert
from spinney.api.policy import PodDisruptionBudget
from spinney.app.components import load
from spinney.cli.run import run as run_command
from spinney.kube.client.transport import Request
from spinney.services.platform.binder_plugins import policy_enables_cdi
from spinney.services.platform.deployments import plan_deployment
from spinney.services.platform.processes import plan_processes, plan_scheduler
from spinney.services.platform.webhooks import plan_certificate
from tests.services.platform.installation import NAMESPACE, platform, said
from tests.services.stage import Stage
from tests.virtual_time import virtual

SERVICES = {"pod-grouper", "binder", "queue-controller", "podgroup-controller", "node-scale-adjuster", "admission"}


async def deployments(held: Stage) -> dict[str, Deployment]:
    """What the operator deployed, by name."""
    return {deployment.name: deployment for deployment in (await held.client.list(Deployment, NAMESPACE)).items}


async def become_available(held: Stage) -> None:
    """Play the Deployment controller: every pod is up."""
    for deployment in (await deployments(held)).values():
        count = deployment.spec.replicas
        status = {
            "observedGeneration": deployment.metadata.generation,
            "replicas": count,
            "updatedReplicas": count,
            "readyReplicas": count,
            "availableReplicas": count,
        }
        await held.client.patch(Deployment, (NAMESPACE, deployment.name), {"status": status}, subresource="status")
    await asyncio.sleep(1)


@virtual
async def test_an_empty_config_deploys_every_service() -> None:
    """An empty Config gives every service with its account, Service and settings, under upstream's names."""
    async with platform() as held:
        assert set(await deployments(held)) == SERVICES | {"kai-scheduler-default"}
        accounts = {hook.name for hook in (await held.client.list(ServiceAccount, NAMESPACE)).items}
        assert accounts >= SERVICES | {"scheduler"}
        assert {hook.name for hook in (await held.client.list(Service, NAMESPACE)).items} >= SERVICES
        assert not (await held.client.list(ValidatingWebhookConfiguration)).items, "nobody answers yet"
        await become_available(held)
        hooks = {hook.name for hook in (await held.client.list(ValidatingWebhookConfiguration)).items}
        assert hooks == {
            "validating-kai-admission",
            "kai-queue-validation-kai-scheduler",
            "kai-podgroup-validation-kai-scheduler",
        }
        mutating = await held.client.get(MutatingWebhookConfiguration, "mutating-kai-admission")
        assert mutating.webhooks[0].client_config.ca_bundle


@virtual
async def test_defaults_are_not_written_into_the_users_objects() -> None:
    """What the user left out stays out."""
    async with platform() as held:
        assert (await held.client.get(Config, "kai-config")).spec == ConfigSpec()
        assert (await held.client.get(SchedulingShard, "default")).spec == SchedulingShard().spec


@virtual
async def test_conditions_tell_what_is_not_ready() -> None:
    """Until pods serve, Ready is False and names them; then it is True."""
    async with platform() as held:
        status, message = await said(held, Config, "kai-config", "Ready")
        assert status == "False"
        assert "binder" in message
        assert (await said(held, Config, "kai-config", "Deployed"))[0] == "True"
        await become_available(held)
        assert (await said(held, Config, "kai-config", "Ready"))[0] == "True"
        assert (await said(held, SchedulingShard, "default", "Ready"))[0] == "True"


@virtual
async def test_a_second_look_writes_nothing() -> None:
    """Once everything is as it should be, five more minutes change nothing."""
    async with platform() as held:
        await become_available(held)
        written: list[str] = []
        held.transport.fault = lambda request: written.append(f"{request.method} {request.path}")
        await asyncio.sleep(700)
        assert written == []


@virtual
async def test_an_edited_config_reaches_the_services() -> None:
    """A changed Config changes settings, replicas and webhooks; a service that is switched off goes."""
    async with platform() as held:
        await become_available(held)
        before = await deployments(held)
        spec = {
            "global": {"schedulerName": "other", "replicaCount": 2, "queueLabelKey": "team/queue"},
            "admission": {"gpuSharing": True, "service": {"podDisruptionBudget": {"enabled": True}}},
            "nodeScaleAdjuster": {"service": {"enabled": False}},
        }
        await held.client.patch(Config, "kai-config", {"spec": spec})
        await asyncio.sleep(1)
        budget = await deployments(held)
        assert set(budget) == (SERVICES | {"other-default"}) - {"node-scale-adjuster"}
        assert budget["admission"].spec.replicas == 2
        settings = yaml.safe_load((await held.client.get(ConfigMap, (NAMESPACE, "admission"))).data["config.yaml"])
        assert settings == {"schedulerName": "other", "queueLabel": "team/queue", "gpuSharing": True}
        budgets = {budget.name for budget in (await held.client.list(PodDisruptionBudget, NAMESPACE)).items}
        assert budgets == {"admission"}
        hook = (await held.client.get(MutatingWebhookConfiguration, "mutating-kai-admission")).webhooks[0]
        assert hook.match_conditions[0].expression == 'object.spec.schedulerName == "other"'
        annotations = [each["admission"].spec.template["metadata"]["annotations"] for each in (before, budget)]
        assert annotations[0] != annotations[1], "new settings must mean new pods"


@virtual
async def test_what_somebody_changed_is_put_back() -> None:
    """A Deployment that is edited or deleted by hand comes back as Config wants it."""
    async with platform() as held:
        await held.client.patch(Deployment, (NAMESPACE, "binder"), {"spec": {"replicas": 7}})
        await held.client.delete(Deployment, (NAMESPACE, "admission"))
        await asyncio.sleep(5)
        by_name = await deployments(held)
        assert by_name["binder"].spec.replicas == 1
        assert "admission" in by_name


@virtual
async def test_shards_come_and_go() -> None:
    """One scheduler per shard, with its pool in its file; a deleted shard takes its scheduler with it."""
    async with platform(pool={"partitionLabelValue": "blue", "placementStrategy": {"gpu": "spread"}}) as held:
        file = yaml.safe_load((await held.client.get(ConfigMap, (NAMESPACE, "kai-scheduler-pool"))).data["config.yaml"])
        assert file["partitionLabelValue"] == "blue"
        assert file["actions"] == "allocate, reclaim, preempt, stalegangeviction"
        names = [plugin["name"] for plugin in file["tiers"][0]["plugins"]]
        assert "gpuspread" in names
        assert "gpupack" not in names
        await held.client.delete(SchedulingShard, "pool")
        await asyncio.sleep(5)
        assert "kai-scheduler-pool" not in await deployments(held)
        assert "kai-scheduler-default" in await deployments(held)


@pytest.mark.parametrize("while_away", [False, True])
@virtual
async def test_without_config_nothing_runs(while_away: bool) -> None:
    """A shard's scheduler goes with Config, also where nobody looked at that moment, and comes back with it."""
    async with platform({"namespace": "elsewhere"}) as held:
        if while_away:
            await held.stop()
        await held.client.delete(Config, "kai-config")
        if while_away:
            await held.start()
        await asyncio.sleep(5)
        for kind in (Deployment, Service, ConfigMap, ServiceAccount):
            left = (await held.client.list(kind, "elsewhere", labels="app.kubernetes.io/managed-by=kai-operator")).items
            assert left == [], kind
        assert await said(held, SchedulingShard, "default", "DependenciesFulfilled") == (
            "False",
            "Config kai-config is not there",
        )
        await held.client.create(Config, {"metadata": {"name": "kai-config"}, "spec": {}})
        await asyncio.sleep(5)
        assert set(await deployments(held)) == SERVICES | {"kai-scheduler-default"}


@virtual
async def test_a_scheduler_waited_ten_seconds_for_a_namespace_in_the_making() -> None:
    """Whoever comes first makes the namespace, Config or shard: neither fails for the other's slow write."""

    async def slow(request: Request) -> None:
        if request.path == "/api/v1/namespaces":
            await asyncio.sleep(2)

    async with platform() as held:
        held.transport.before = slow
        await held.client.patch(Config, "kai-config", {"spec": {"namespace": "elsewhere"}})
        await asyncio.sleep(8)
        assert await held.client.get(Deployment, ("elsewhere", "kai-scheduler-default"))


@virtual
async def test_one_scheduler_per_pool() -> None:
    """A second shard with the same pool is told so, and takes over when the first one goes."""
    async with platform(first={"partitionLabelValue": "blue"}) as held:
        await asyncio.sleep(1)
        body = {"metadata": {"name": "a-second"}, "spec": {"partitionLabelValue": "blue"}}
        await held.client.create(SchedulingShard, body)
        await asyncio.sleep(5)
        assert set(await deployments(held)) == SERVICES | {"kai-scheduler-default", "kai-scheduler-first"}
        assert await said(held, SchedulingShard, "a-second", "Deployed") == (
            "False",
            "spec.partitionLabelValue: SchedulingShard first serves node pool 'blue' already; name another pool here, "
            "or delete one of the two",
        )
        assert (await said(held, SchedulingShard, "first", "Deployed"))[0] == "True"
        await held.client.delete(SchedulingShard, "first")
        await asyncio.sleep(5)
        assert set(await deployments(held)) == SERVICES | {"kai-scheduler-default", "kai-scheduler-a-second"}
        assert (await said(held, SchedulingShard, "a-second", "Deployed"))[0] == "True"


@virtual
async def test_a_shard_moves_to_another_pool() -> None:
    """Its scheduler gets the new value, and restarts with it; a value that no label can have is told."""
    async with platform() as held:
        before = (await deployments(held))["kai-scheduler-default"].spec.template["metadata"]["annotations"]
        await held.client.patch(SchedulingShard, "default", {"spec": {"partitionLabelValue": "Green_1"}})
        await asyncio.sleep(5)
        data = (await held.client.get(ConfigMap, (NAMESPACE, "kai-scheduler-default"))).data
        assert yaml.safe_load(data["config.yaml"])["partitionLabelValue"] == "Green_1"
        assert (await deployments(held))["kai-scheduler-default"].spec.template["metadata"]["annotations"] != before
        await held.client.patch(SchedulingShard, "default", {"spec": {"partitionLabelValue": "a b"}})
        await asyncio.sleep(5)
        status, message = await said(held, SchedulingShard, "default", "Deployed")
        assert (status, message[:75]) == (
            "False",
            "spec.partitionLabelValue is 'a b', which no node can have as a label; it mu",
        )
        assert (await held.client.get(ConfigMap, (NAMESPACE, "kai-scheduler-default"))).data == data


@virtual
async def test_a_mistake_in_a_shard_is_told_and_stops_nothing() -> None:
    """An unknown plugin is named in the conditions; the scheduler that runs stays as it was."""
    async with platform() as held:
        before = (await held.client.get(ConfigMap, (NAMESPACE, "kai-scheduler-default"))).data
        await held.client.patch(SchedulingShard, "default", {"spec": {"plugins": {"nope": {"enabled": True}}}})
        await asyncio.sleep(1)
        status, message = await said(held, SchedulingShard, "default", "Deployed")
        assert status == "False"
        assert message.startswith("spec.plugins: plugin nope is unknown; known are ")
        assert (await held.client.get(ConfigMap, (NAMESPACE, "kai-scheduler-default"))).data == before


@virtual
async def test_a_mistake_in_config_is_told_and_stops_nothing() -> None:
    """The field and what it must be stand in the conditions; what runs stays as it was."""
    async with platform() as held:
        before = await deployments(held)
        wrong = {"volumebinding": {"arguments": {"bindTimeoutSeconds": "soon"}}}
        await held.client.patch(Config, "kai-config", {"spec": {"binder": {"plugins": wrong}}})
        await asyncio.sleep(1)
        assert await said(held, Config, "kai-config", "Deployed") == (
            "False",
            "spec: binder.plugins.volumebinding.arguments.bindTimeoutSeconds is 'soon'; it must be a number of seconds",
        )
        assert await deployments(held) == before


@virtual
async def test_a_namespace_that_cannot_be_stopped_the_platform_until_its_restart() -> None:
    """Every request about it was refused: no condition said so, and a corrected Config did not help."""
    async with platform() as held:
        before = await deployments(held)
        await held.client.patch(
            Config, "kai-config", {"spec": {"binder": {"resourceReservation": {"namespace": "A b"}}}}
        )
        await asyncio.sleep(1)
        status, message = await said(held, Config, "kai-config", "Deployed")
        assert status == "False"
        assert "binder.resourceReservation.namespace is 'A b', which no namespace can be named" in message
        status, message = await said(held, SchedulingShard, "default", "Deployed")
        assert status == "False"
        assert message.startswith("Config kai-config: spec: binder.resourceReservation.namespace is 'A b'")
        assert await deployments(held) == before
        await held.client.patch(Config, "kai-config", {"spec": {"binder": {"resourceReservation": None}}})
        await asyncio.sleep(1)
        assert (await said(held, Config, "kai-config", "Deployed"))[0] == "True"
        assert (await said(held, SchedulingShard, "default", "Deployed"))[0] == "True"


@virtual
async def test_missing_kinds_are_told() -> None:
    """Prometheus without its operator: everything else is deployed, and the condition says what is missing."""
    async with platform({"prometheus": {"enabled": True}}) as held:
        status, message = await said(held, Config, "kai-config", "DependenciesFulfilled")
        assert status == "False"
        assert "Prometheus of monitoring.coreos.com/v1 is not there" in message
        assert (await said(held, Config, "kai-config", "Deployed"))[0] == "True"


def test_ports_are_upstreams_and_can_be_chosen() -> None:
    """Monitors find ports by their names; Config moves them, and the webhook's registration follows."""
    assert _ports({}) == {
        "pod-grouper": [("http-metrics", 8080, 8080)],
        "binder": [("http-metrics", 8080, 8080)],
        "queue-controller": [("metrics", 8080, 8080), ("webhook", 443, 9443)],
        "podgroup-controller": [("http-metrics", 8080, 8080), ("webhook", 443, 9443)],
        "node-scale-adjuster": [("http-metrics", 8080, 8080)],
        "admission": [("http-metrics", 8080, 8080), ("webhook", 443, 9443)],
    }
    moved = _ports(
        {
            "binder": {"metricsPort": 9000},
            "admission": {"webhook": {"port": 444, "targetPort": 9444, "metricsPort": 9001}},
            "queueController": {"controllerService": {"webhook": {"name": "reviews", "port": 445}}},
        }
    )
    assert moved["binder"] == [("http-metrics", 9000, 9000)]
    assert moved["admission"] == [("http-metrics", 9001, 9001), ("webhook", 444, 9444)]
    assert moved["queue-controller"][1] == ("reviews", 445, 9443)


def _ports(spec: Json) -> dict[str, list[tuple[str, int, int]]]:
    config = convert(ConfigSpec, spec)
    ports = {}
    for process in plan_processes(config, "image"):
        service = next(each for each in plan_deployment(process, config, "image") if each["kind"] == "Service")
        ports[process.name] = [(port["name"], port["port"], port["targetPort"]) for port in service["spec"]["ports"]]
    return ports


@virtual
async def test_queued_pods_are_adopted_where_config_says_so() -> None:
    """Then the webhook sees pods that leave their scheduler to Kubernetes, if they name a queue."""
    async with platform() as held:
        await become_available(held)
        marks = {"metadata": {"annotations": {"spinney.dev/adopt-queued-pods": "true"}}}
        await held.client.patch(Config, "kai-config", marks)
        await asyncio.sleep(1)
        hook = (await held.client.get(MutatingWebhookConfiguration, "mutating-kai-admission")).webhooks[0]
        assert hook.match_conditions[0].expression == (
            'object.spec.schedulerName == "kai-scheduler" || (object.spec.schedulerName == "default-scheduler" && '
            'has(object.metadata.labels) && "kai.scheduler/queue" in object.metadata.labels)'
        )


def test_a_memory_limit_is_for_admission_and_binder() -> None:
    """The plugin is one for both: the container refers to what the binder writes."""
    config = convert(ConfigSpec, {"binder": {"plugins": {"hamicore": {"enabled": True}}}})
    on = {process.name for process in plan_processes(config, "i") if getattr(process.settings, "memory_limit", False)}
    assert on == {"admission", "binder"}


@pytest.mark.parametrize(
    ("binder", "cdi", "wanted"),
    [
        ({}, False, {}),
        ({}, True, {"cdi": True}),
        ({"cdiEnabled": False}, True, {}),
        ({"cdiEnabled": False, "plugins": {"gpusharing": {"arguments": {"cdiEnabled": "true"}}}}, False, {"cdi": True}),
        (
            {"plugins": {"volumebinding": {"arguments": {"bindTimeoutSeconds": "30"}}}},
            False,
            {"volumeTimeoutSeconds": 30},
        ),
        ({"plugins": {"volumebinding": {"enabled": False}}}, False, {"volumes": False}),
        ({"plugins": {"dynamicresources": {"enabled": False}}}, False, {"claims": False}),
    ],
)
def test_plugins_of_the_binder(binder: Json, cdi: bool, wanted: Json) -> None:
    """A plugin's own argument comes before Config's field, that before what the cluster says."""
    config = convert(ConfigSpec, {"binder": binder})
    settings = next(each.settings for each in plan_processes(config, "image", cdi=cdi) if each.name == "binder")
    assert msgspec.to_builtins(settings) | wanted == msgspec.to_builtins(settings)
    default = next(each.settings for each in plan_processes(ConfigSpec(), "image") if each.name == "binder")
    assert {**msgspec.to_builtins(default), **wanted} == msgspec.to_builtins(settings)


@pytest.mark.parametrize(
    ("release", "cdi", "wanted"),
    [
        ("v25.10.0", {"enabled": True}, True),
        ("v26.1.2", {"enabled": True}, True),
        ("v24.9.1", {"enabled": True}, False),
        ("v24.9.1", {"enabled": True, "default": True}, True),
        ("v25.10.0", {"enabled": False}, False),
        ("", {}, False),
    ],
)
def test_how_nvidias_operator_names_devices(release: str, cdi: Json, wanted: bool) -> None:
    """From 25.10 on the interface is the default where it is on; before, only where that is said."""
    labels = {"app.kubernetes.io/version": release} if release else {}
    assert policy_enables_cdi({"metadata": {"labels": labels}, "spec": {"cdi": cdi}}) == wanted


@pytest.mark.parametrize("number", [0, -1])
def test_a_binder_that_was_to_work_on_less_than_one_pod_bound_none(number: int) -> None:
    """Fewer than one at once means the default, for every service that can be told so."""
    block = {"maxConcurrentReconciles": number}
    config = convert(ConfigSpec, {"binder": block, "podGrouper": block, "podGroupController": block})
    workers = [getattr(process.settings, "workers", 1) for process in plan_processes(config, "image")]
    assert min(workers) > 0


def test_what_is_deployed_is_understood() -> None:
    """`spinney run` takes the arguments of every Deployment, and reads its settings as they were meant."""
    config = convert(ConfigSpec, {"global": {"jsonLog": True}, "binder": {"service": {"k8sClientConfig": {"qps": 5}}}})
    scheduler = plan_scheduler(convert(SchedulingShard, {"metadata": {"name": "s"}, "spec": {"kValue": 0.5}}), config)
    assert scheduler is not None
    for process in (*plan_processes(config, "image"), scheduler):
        file, deployment, _ = plan_deployment(process, config, "image")
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        parsed = run_command.make_context("run", arguments[1:]).params
        assert parsed["components"] == (process.component,)
        read = convert(load(process.component).settings, yaml.safe_load(file["data"]["config.yaml"]))
        assert read == process.settings


def test_certificates_are_renewed_and_both_authorities_trusted() -> None:
    """A certificate is renewed before it ends; a new authority is trusted beside the old one."""
    config = ConfigSpec()
    admission = next(process for process in plan_processes(config, "image") if process.name == "admission")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    secret, trusted = plan_certificate(admission, config, None, now)
    same, _ = plan_certificate(admission, config, secret, now + timedelta(days=30))
    assert same == secret
    later, still = plan_certificate(admission, config, secret, now + timedelta(days=80))
    assert later["data"]["tls.crt"] != secret["data"]["tls.crt"]
    assert still == trusted
    _, both = plan_certificate(admission, config, secret, now + timedelta(days=300))
    assert len(both) > 1.5 * len(trusted)
