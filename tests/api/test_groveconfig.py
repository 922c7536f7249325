"""The operator's configuration file is checked as a whole."""

from __future__ import annotations

import msgspec
import pytest

from spinney.api.groveconfig import OperatorConfiguration, problems
from spinney.api.meta import convert
from spinney.api.yaml_reader import read_yaml


def test_an_empty_file_means_the_defaults() -> None:
    """Every setting has a default; kube-scheduler is always a profile."""
    config = convert(OperatorConfiguration, {})
    assert config.scheduler.names == ("default-scheduler",)
    assert (config.server.webhooks.port, config.controllers.pod_gang.concurrent_syncs) == (2750, 5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("logLevel: loud", "logLevel: 'loud' is not one of debug, info, error"),
        ("logFormat: xml", "logFormat: 'xml' is not one of json, text"),
        ("controllers: {podClique: {concurrentSyncs: 0}}", "controllers.podClique.concurrentSyncs: 0 is not above 0"),
        ("scheduler: {defaultProfileName: x}", "scheduler.defaultProfileName: 'x' is not one of default-scheduler"),
        ("scheduler: {profiles: [{name: volcano}, {name: volcano}]}", "'volcano' is there twice"),
        ("leaderElection: {enabled: true, leaseDuration: 5s}", "must be longer than renewDeadline"),
        ("leaderElection: {enabled: true, retryPeriod: soon}", "leaderElection.retryPeriod: duration 'soon'"),
        ("leaderElection: {enabled: true, resourceName: ''}", "leaderElection.resourceName: must be set"),
        ("runtimeClientConnection: {burst: -1}", "runtimeClientConnection.burst: -1 is below 0"),
        ("server: {webhooks: {certProvisionMode: magic}}", "certProvisionMode: 'magic' is not one of auto, manual"),
    ],
)
def test_problems_are_named(text: str, problem: str) -> None:
    """Each message names the field, what was found and what is allowed."""
    (only_problem,) = problems(convert(OperatorConfiguration, read_yaml(text)))
    assert problem in only_problem


def test_an_unknown_field_is_an_error() -> None:
    """A misspelt setting must not be passed over."""
    with pytest.raises(msgspec.ValidationError, match="colour"):
        convert(OperatorConfiguration, {"colour": "red"})
