"""Asks the API server by dry run whether it would accept a clique's pods."""

from __future__ import annotations

import re

from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.grove.admission.problems import Problems
from spinney.kube.client.client import Client
from spinney.kube.errors import ApiError, ConnectionLost, Invalid

# What the operator or its scheduler adds, or what belongs to the cluster's state and not to the template.
_NOT_CHECKED = ("schedulerName", "priorityClassName", "serviceAccountName", "runtimeClassName", "nodeName")
_UNKNOWN = re.compile(r'unknown field "([^"]+)"')


async def check(client: Client, new: Json, old: Json | None, problems: Problems) -> None:
    """Every clique template that changed, as a pod, by dry-run with strict fields.

    Only a refusal of the pod itself refuses the set; if the server cannot say, the user is told so.
    """
    namespace = str(new["metadata"].get("namespace") or "default")
    before = {
        clique["name"]: clique for clique in ((old or {}).get("spec") or {}).get("template", {}).get("cliques", ())
    }
    for position, clique in enumerate(new["spec"]["template"]["cliques"]):
        path = f"spec.template.cliques[{position}].spec.podSpec"
        if clique["name"] in before and before[clique["name"]]["spec"].get("podSpec") == clique["spec"].get("podSpec"):
            continue
        await _check_one(client, namespace, clique, path, problems)


async def _check_one(client: Client, namespace: str, clique: Json, path: str, problems: Problems) -> None:
    pod_spec = {key: value for key, value in clique["spec"]["podSpec"].items() if key not in _NOT_CHECKED}
    pod = {
        "metadata": {"generateName": f"{clique['name']}-check-", "namespace": namespace},
        "spec": {**pod_spec, "automountServiceAccountToken": False},
    }
    try:
        await client.create(Pod, pod, namespace, dry_run=True, strict=True)
    except Invalid as error:
        for field, message in _causes(error):
            where = f"{path}.{field.removeprefix('spec.')}" if field else path
            problems.forbidden(where, f"the API server would refuse its pods: {message}")
    except (ApiError, ConnectionLost) as error:
        problems.warnings.append(f"{path}: could not be checked against the API server: {error}")


def _causes(error: Invalid) -> list[tuple[str, str]]:
    causes = [(cause.field, cause.message) for cause in error.status.details.causes if cause.field]
    if causes:
        return causes
    unknown = _UNKNOWN.findall(str(error))
    if unknown:
        return [(field, f'unknown field "{field.removeprefix("spec.")}"; correct or remove it') for field in unknown]
    return [("", str(error))]
