"""What helps where nodes have room and refuse a task nevertheless, or where something that it needs is missing."""

from __future__ import annotations

import re

from spinney.scheduler.state.problems import NoRoom

# What no node can cure: it comes before everything else.
_MISSING = (
    (r'(configmap|persistentvolumeclaim|persistentvolume) "(.+)" not found', "create {0} {1}"),
    (r'persistentvolumeclaim "(.+)" is being deleted', "create persistentvolumeclaim {0} anew once it is gone"),
    (
        r"pod has unbound immediate PersistentVolumeClaims",
        "provide volumes for the pod's claims, or name a storage class that waits for its first consumer",
    ),
    (r'waiting for the resource claim of "(.+)" to be created', "create the resource claim behind {0}"),
    (r'device class "(.+)" not found', "create device class {0}"),
)
# What keeps a task off nodes that have room for it.
_REFUSED = (
    (r"node\(s\) had untolerated taint \{(.*?):.*\}", "tolerate the taint {0}, or take it off {nodes}"),
    (
        r"node\(s\) didn't match Pod's node affinity/selector",
        "relax the pod's node selector or affinity, or label {nodes} accordingly",
    ),
    (r"node\(s\) didn't match pod affinity rules", "relax the pod's rules about other pods, which rule out {all}"),
    (r"node is unschedulable", "uncordon {nodes}"),
    (r"node\(s\) are no (CPU|GPU) workers", "mark {nodes} as a {0} worker"),
    (r"node is not ready|node has \w+", "repair {nodes}"),
    (r"node\(s\) had volume node affinity conflict", "free or add room where the pod's volumes can be reached"),
    (r"node\(s\) exceed max volume count", "detach volumes from {nodes}"),
    (r"node\(s\) pod number exceeded", "free pod slots on {nodes}"),
    (r"node\(s\) have no known GPU memory", "label {nodes} with the memory of their GPUs"),
    (r"node\(s\) are kept for a gang that has waited longer", "wait until that gang has started"),
)


def missing(problem: NoRoom) -> str:
    """How to provide what no node can; empty if nothing of that kind is missing."""
    return next((found for text, count in problem.refusals if (found := _cure(_MISSING, text, count))), "")


def accepting(problem: NoRoom) -> str:
    """How to make the nodes that have room take the task; empty if none has."""
    cures = [(count, found) for text, count in problem.refusals if (found := _cure(_REFUSED, text, count))]
    return max(cures)[1] if cures else ""


def all_refuse(problem: NoRoom) -> bool:
    """Whether no node lacks room: each has another reason to refuse the task."""
    return all(_cure(_REFUSED, text, count) for text, count in problem.refusals)


def _cure(table: tuple[tuple[str, str], ...], text: str, count: int) -> str:
    every = "the node that has room" if count == 1 else f"{count} nodes that have room"
    nodes = every if count == 1 else f"one of {every}"
    for pattern, cure in table:
        found = re.fullmatch(pattern, text)
        if found is not None:
            return cure.format(*found.groups(), nodes=nodes, all=every)
    return ""
