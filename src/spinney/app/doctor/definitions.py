"""CustomResourceDefinitions: whether they are there, established, and of this version."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.crd import crds
from spinney.api.meta import Json
from spinney.app.doctor.findings import Finding, Target, shortened
from spinney.kube.difference import covers

_APPLY = "spinney crds | kubectl apply --server-side --force-conflicts -f -"


async def check_definitions(target: Target) -> list[Finding]:
    """Compare every definition of ours with the live one."""
    resource = CustomResourceDefinition.resource
    live = {crd["metadata"]["name"]: await target.client.find(resource, crd["metadata"]["name"]) for crd in crds()}
    present = {name: crd for name, crd in live.items() if crd is not None}
    missing = sorted(set(live) - set(present))
    findings = []
    if missing:
        text = f"{len(missing)} of {len(live)} CRDs are missing: {shortened(missing)}"
        # Helm refuses to install over definitions that it has not made.
        advice = f"run: {_APPLY}" if present else "install: see docs/users/install.md"
        findings.append(Finding(check="crds", status="problem", text=text, advice=advice))
    waiting = sorted(name for name, crd in present.items() if not _established(crd))
    if waiting:
        text = f"not established: {shortened(waiting)}"
        advice = f"kubectl describe crd {waiting[0]} says why; often another CRD has the same names"
        findings.append(Finding(check="crds", status="problem", text=text, advice=advice))
    findings += _other_versions(present)
    if findings:
        return findings
    return [Finding(check="crds", status="ok", text=f"all {len(live)} CRDs are served, as this version has them")]


def _other_versions(present: Mapping[str, Json]) -> list[Finding]:
    ours = {crd["metadata"]["name"]: crd for crd in crds()}
    differing = sorted(name for name, crd in present.items() if not covers(crd["spec"], ours[name]["spec"]))
    if not differing:
        return []
    makers = sorted({_maker(present[name]) for name in differing})
    text = f"CRDs of another version or project ({', '.join(makers)}): {shortened(differing)}"
    advice = f"to have our columns and fields (nothing stored is lost), run: {_APPLY}"
    return [Finding(check="crds", status="warning", text=text, advice=advice)]


def _maker(crd: Json) -> str:
    metadata = crd["metadata"]
    release = (metadata.get("annotations") or {}).get("meta.helm.sh/release-name")
    if release:
        return f"Helm release {release}"
    managers = [entry.get("manager", "") for entry in metadata.get("managedFields") or ()]
    return next((name for name in managers if name and name != "kube-apiserver"), "unknown")


def _established(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
