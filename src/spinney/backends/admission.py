"""Whether a backend can place a set, and the annotations that its gangs need for that backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spinney.api.grove import PodCliqueSet
from spinney.api.labels import ALLOW_DOWNGRADE
from spinney.api.meta import Json
from spinney.backends.interface import Backend, Problem
from spinney.backends.required_features import set_losses
from spinney.backends.served import Served


@dataclass(frozen=True)
class Review:
    """Problems refuse the set; warnings are shown to the user who applied it."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


def review_set(backend: Backend, pcs: PodCliqueSet, served: Served) -> Review:
    """Refuse what a backend cannot express of a set, or warn if the set allows the downgrade."""
    capabilities = backend.capabilities(served)
    problems = backend.check(pcs, served)
    warnings = []
    if capabilities.api:
        problems += tuple(
            Problem(
                loss.field,
                f"{loss.reason(backend.name, capabilities.api)}; choose another backend, or set the annotation "
                f'{ALLOW_DOWNGRADE}: "true" to go without',
                waivable=True,
            )
            for loss in set_losses(pcs, capabilities)
        )
    elif backend.resources:
        named = ", ".join(dict.fromkeys(resource.api_version for resource in backend.resources))
        warnings.append(f"the cluster serves no API of backend {backend.name} ({named}); its gangs will wait for it")
    if allows_downgrade(pcs.metadata.annotations):
        warnings += [f"{problem.field}: {problem.message}" for problem in problems if problem.waivable]
        problems = tuple(problem for problem in problems if not problem.waivable)
    return Review(problems, tuple(warnings))


def allows_downgrade(annotations: Mapping[str, str]) -> bool:
    """Whether a set, or a gang of it, may lose what its scheduler cannot express."""
    return annotations.get(ALLOW_DOWNGRADE) == "true"


def gang_annotations(backend: Backend, pcs: PodCliqueSet, pod_specs: Mapping[str, Json]) -> dict[str, str]:
    """The annotations that a PodGang needs for its backend; `pod_specs` is by pod group name."""
    opted = {ALLOW_DOWNGRADE: "true"} if allows_downgrade(pcs.metadata.annotations) else {}
    return {**backend.gang_annotations(pcs, pod_specs), **opted}
