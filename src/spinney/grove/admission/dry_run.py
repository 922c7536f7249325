"""Asks the API server by dry run whether it would accept a clique's pods."""

from __future__ import annotations

import re

from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.grove.admission.problems import Problems
from spinney.kube.client.client import Client
from spinney.kube.errors import ApiError, ConnectionLost, Forbidden, Invalid

# What the operator or its scheduler adds, or what belongs to the cluster's state and not to the template.
_NOT_CHECKED = ("schedulerName", "serviceAccountName", "runtimeClassName", "nodeName")
_NO_CLASS = re.compile(r"no PriorityClass with name (\S+) was found")
_UNKNOWN = re.compile(r'unknown field "([^"]+)"')


async def check(client: Client, new: Json, old: Json | None, problems: Problems) -> None:
    """Every clique template that changed, as a pod, by dry-run with strict fields.

    Only a refusal of the pod itself refuses the set; if the server cannot say, the user is told so.
    """
    namespace = str(new["metadata"].get("namespace") or "default")
    before = _pod_specs(old) if old else {}
    for position, (name, pod_spec) in enumerate(_pod_specs(new).items()):
        if before.get(name) != pod_spec:
            path = f"spec.template.cliques[{position}].spec.podSpec"
            checked = {key: value for key, value in pod_spec.items() if key not in _NOT_CHECKED}
            pod = {
                "metadata": {"generateName": "check-", "namespace": namespace},
                "spec": {**checked, "automountServiceAccountToken": False},
            }
            await _check_one(client, pod, path, problems)


def _pod_specs(pcs: Json) -> dict[str, Json]:
    """The pod specs of a set by clique, with the priority that the set gives them."""
    template = (pcs.get("spec") or {}).get("template") or {}
    priority = template.get("priorityClassName") or ""
    return {
        clique["name"]: {"priorityClassName": priority, **clique["spec"].get("podSpec", {})}
        for clique in template.get("cliques", ())
    }


async def _check_one(client: Client, pod: Json, path: str, problems: Problems) -> None:
    try:
        await client.create(Pod, pod, pod["metadata"]["namespace"], dry_run=True, strict=True)
    except Invalid as error:
        for field, message in _causes(error):
            where = f"{path}.{field.removeprefix('spec.')}" if field else path
            problems.forbidden(where, f"the API server would refuse its pods: {message}")
    except Forbidden as error:
        absent = _NO_CLASS.search(str(error))
        if absent is None:
            problems.warnings.append(f"{path}: could not be checked against the API server: {error}")
            return
        # It may come later, as ServiceAccounts may; what else is wrong is looked for without it.
        problems.warnings.append(
            f"{path}.priorityClassName: PriorityClass {absent[1]} does not exist: "
            "the API server refuses the pods until it is created"
        )
        without = {key: value for key, value in pod["spec"].items() if key != "priorityClassName"}
        await _check_one(client, {**pod, "spec": without}, path, problems)
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
