"""The operator's configuration file: every field does what it says, or it is said that it does not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.meta import convert
from spinney.app.process_settings import ProcessSettings
from spinney.cli.main import main
from spinney.grove.component import component
from spinney.grove.settings import GroveConfiguration, Settings, lease, process
from spinney.kube.controllers.host import Host
from spinney.kube.controllers.leader import LEASE
from spinney.kube.errors import ApiError
from spinney.kube.process_settings import Listen, ProcessOptions, Timing
from tests import make
from tests.grove.stage import TOPOLOGY, Stage
from tests.grove.virtual import VirtualStage, play

FULL = """
runtimeClientConnection: {qps: 50, burst: 0}
leaderElection:
  enabled: true
  leaseDuration: 30s
  renewDeadline: 20s
  retryPeriod: 4s
  resourceName: mine
  resourceNamespace: here
server:
  webhooks: {port: 9555, certProvisionMode: manual, serverCertDir: /certs}
  healthProbes: {bindAddress: 127.0.0.1, port: 9556}
  metrics: {port: 9557}
controllers:
  podCliqueSet: {concurrentSyncs: 3}
  podClique: {concurrentSyncs: 4}
  podCliqueScalingGroup: {concurrentSyncs: 5}
  podGang: {concurrentSyncs: 6}
logLevel: debug
logFormat: json
"""


def configuration(text: str) -> GroveConfiguration:
    """The file as `spinney run` reads it."""
    return convert(GroveConfiguration, yaml.safe_load(text) or {})


def test_the_process_is_as_the_file_says() -> None:
    """Rate, election, addresses, certificates and logs of the process come from the file."""
    assert process(configuration(FULL)) == ProcessOptions(
        qps=50,
        burst=1,
        elect=True,
        timing=Timing(30, 20, 4),
        webhooks=Listen("0.0.0.0", 9555),
        certificates=Path("/certs"),
        secret="grove-webhook-server-cert",
        health=Listen("127.0.0.1", 9556),
        metrics=Listen("0.0.0.0", 9557),
        log_level="debug",
        log_format="json",
    )
    assert lease(configuration(FULL)) == "here/mine"


def test_controllers_work_on_as_many_as_the_file_says() -> None:
    """concurrentSyncs of sets, of cliques with scaling groups, and of gangs are those of our three controllers."""
    settings = Settings(config=configuration(FULL))
    assert (settings.sets_at_once, settings.replicas_at_once, settings.statuses_at_once) == (3, 9, 6)


def test_without_a_file_all_is_as_the_flags_say() -> None:
    """What a file leaves out is what `spinney run` does anyway."""
    said = process(configuration(""))
    without = ProcessSettings()
    assert (said.qps, said.burst, said.elect) == (without.qps, without.burst, without.elect)
    assert (said.log_level, said.log_format, said.timing) == (without.log_level, without.log_format, without.timing)
    assert (said.certificates, said.health, said.metrics, said.ignored) == (None, None, None, ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("runtimeClientConnection: {contentType: application/vnd.kubernetes.protobuf}", "contentType"),
        ("runtimeClientConnection: {acceptContentTypes: text/plain}", "acceptContentTypes"),
        ("debugging: {enableProfiling: true}", "no pprof here"),
        ("scheduler: {profiles: [{name: kai-scheduler, config: {a: 1}}]}", "scheduler.profiles[0].config"),
        ("clusterTopology: {enabled: true, levels: []}", "ClusterTopologyBinding"),
    ],
)
def test_what_is_not_done_is_said(text: str, words: str) -> None:
    """A field that asks for something this operator does not do is named when it starts."""
    (said,) = process(configuration(text)).ignored
    assert words in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("leaderElection: {enabled: true, resourceLock: endpoints}", "leaderElection.resourceLock"),
        ("leaderElection: {enabled: true, retryPeriod: 11s}", "longer than retryPeriod"),
        ("leaderElection: {enabled: true, leaseDuration: -15s}", "leaderElection.leaseDuration"),
        ("runtimeClientConnection: {qps: 0}", "runtimeClientConnection.qps"),
        ("server: {metrics: {port: 70000}}", "server.metrics.port"),
        ("controllers: {podGang: {concurrentSyncs: -1}}", "controllers.podGang.concurrentSyncs"),
        ("server: {webhooks: {certProvisionMode: manual, serverCertDir: /nowhere}}", "/nowhere/tls.crt"),
        ("colour: red", "colour"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """`spinney run` ends with code 2 and one line that names the field."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    ended = CliRunner().invoke(main, ["run", "grove", "--config", str(path), "--kubeconfig", "/nowhere"])
    assert ended.exit_code == 2
    assert words in ended.stderr


def test_the_older_name_of_topology_is_heeded() -> None:
    """clusterTopology.enabled of earlier versions switches topology off and on."""
    assert not Settings(config=configuration("clusterTopology: {enabled: false}")).topology_aware
    assert Settings(config=configuration("clusterTopology: {enabled: true}")).topology_aware
    assert Settings(config=configuration("")).topology_aware


def test_only_profiles_that_are_listed_are_used() -> None:
    """Where profiles are listed, a set or a binding for another scheduler is refused, in words that help."""

    async def scenario(stage: Stage) -> None:
        await stage.apply(make.pcs("mine").clique("a", schedulerName="kai-scheduler").build())
        with pytest.raises(ApiError, match=r"'volcano' is not enabled.*kai-scheduler, default-scheduler"):
            await stage.apply(make.pcs("theirs").clique("a", schedulerName="volcano").build())
        bound = [{"schedulerName": "volcano", "topologyReference": "t"}]
        with pytest.raises(ApiError, match="not enabled in Grove"):
            await stage.apply({**TOPOLOGY, "spec": {**TOPOLOGY["spec"], "schedulerTopologyBindings": bound}})
        await stage.runs(1)

    listed = configuration("scheduler: {profiles: [{name: kai-scheduler}]}")
    play(scenario, nodes=2, settings=Settings(user="operator", config=listed))


def test_one_of_two_operators_acts() -> None:
    """The Lease has the name and place that the file gives it; when its holder goes, the other operator takes it."""
    config = configuration("leaderElection: {enabled: true, resourceName: mine, resourceNamespace: here}")

    async def scenario(stage: VirtualStage) -> None:
        await stage.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "here"}})
        client, clock = stage.cluster.client(), stage.cluster.clock
        running = {
            name: asyncio.create_task(Host(client, clock, [(component(), config)], identity=name).run())
            for name in ("one", "two")
        }
        await stage.settle(5)
        first = (await client.get(LEASE, ("here", "mine")))["spec"]["holderIdentity"]
        running.pop(first).cancel()
        await stage.settle(5)
        (second,) = running
        assert (await client.get(LEASE, ("here", "mine")))["spec"]["holderIdentity"] == second
        running[second].cancel()

    play(scenario, nodes=1)
