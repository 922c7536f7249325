"""The API server: its version, what it serves for gangs, and its clock."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime

import msgspec

from spinney.api.meta import Json
from spinney.app.doctor.findings import Finding, Target
from spinney.kube.client.discovery import Discovery
from spinney.kube.errors import ApiError

_OLDEST, _FIRST_WITH_GANGS = 33, 35
_GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")
# Certificates are made an hour back, Leases last fifteen seconds.
_TOLERATED_SECONDS = 5.0


async def check_version(target: Target) -> list[Finding]:
    """Which Kubernetes it is."""
    version = await _version(target)
    minor = int(re.sub(r"\D", "", str(version.get("minor", "0"))) or 0)
    text = f"Kubernetes {version.get('gitVersion', '?')}"
    if minor < _OLDEST:
        return [Finding(check="version", status="problem", text=text, advice=f"upgrade it to 1.{_OLDEST} or later")]
    if minor < _FIRST_WITH_GANGS:
        advice = f"gangs on kube-scheduler need 1.{_FIRST_WITH_GANGS}; other schedulers work"
        return [Finding(check="version", status="note", text=text, advice=advice)]
    return [Finding(check="version", status="ok", text=text), *await _gates(target)]


async def is_laptop(target: Target) -> bool:
    """Whether it is the embedded API server of `spinney up`."""
    return str((await _version(target)).get("gitVersion", "")).endswith("+spinney")


async def _version(target: Target) -> Json:
    answer = await target.client.call("GET", "/version")
    version: Json = msgspec.json.decode(answer.body)
    return version


async def _gates(target: Target) -> list[Finding]:
    """Which feature gates for gangs are on, by the API server's own metrics, and which API is served."""
    served = [
        version
        for version in ("v1alpha1", "v1alpha2", "v1alpha3", "v1beta1")
        if await Discovery(target.client).resource(f"scheduling.k8s.io/{version}", "Workload") is not None
    ]
    try:
        page = (await target.client.call("GET", "/metrics")).body.decode()
    except ApiError:
        page = ""
    enabled = set(re.findall(r'^kubernetes_feature_enabled\{name="(\w+)"[^}]*\} 1$', page, re.MULTILINE))
    gates = ", ".join(name for name in _GATES if name in enabled)
    if served:
        text = f"gangs on kube-scheduler: Workload {', '.join(served)} is served"
        return [Finding(check="gates", status="ok", text=text + (f"; on: {gates}" if gates else ""))]
    advice = (
        "only if kube-scheduler is to place gangs: --feature-gates=GenericWorkload=true "
        "--runtime-config=scheduling.k8s.io/v1alpha1=true on the API server, GangScheduling=true on kube-scheduler"
    )
    text = "gangs on kube-scheduler: no Workload API is served"
    return [Finding(check="gates", status="note", text=text, advice=advice)]


async def check_clock(target: Target) -> list[Finding]:
    """How far the API server's clock is from ours, by the date of its answers."""
    before = target.clock.now()
    answer = await target.client.call("GET", "/version")
    date = {key.lower(): value for key, value in answer.headers.items()}.get("date")
    if date is None:
        return [Finding(check="clock", status="unknown", text="the API server does not tell the time")]
    # Its date has whole seconds, and was set between our question and its answer.
    seconds = (parsedate_to_datetime(date) - before).total_seconds()
    if abs(seconds) <= _TOLERATED_SECONDS:
        return [Finding(check="clock", status="ok", text="the API server's clock agrees with this machine's")]
    side = "ahead of" if seconds > 0 else "behind"
    text = f"the API server's clock is {abs(seconds):.0f} s {side} this machine's"
    return [Finding(check="clock", status="warning", text=text, advice="let NTP set the clocks of all machines")]
