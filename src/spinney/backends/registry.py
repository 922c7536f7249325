"""The registry of backends: finds them by name, and chooses one for a set.

Built-in and third-party backends are registered alike, under the entry point group `spinney.backends`. `Registry.load`
imports them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from spinney.api.grove import PodCliqueSet
from spinney.api.labels import SCHEDULER_BACKEND
from spinney.api.meta import Resource
from spinney.backends.interface import Backend
from spinney.kube.errors import CannotStart

GROUP = "spinney.backends"
FALLBACK = "kai"
KUBE_SCHEDULER = "default-scheduler"

_MEMBERS = (
    "name",
    "gate",
    "resources",
    "rules",
    "crds",
    "lease",
    "claims",
    "scheduler_name",
    "capabilities",
    "check",
    "gang_annotations",
    "prepare",
    "translate",
    "ready",
)


class NoChoice(ValueError):
    """No backend can be chosen for a set: the field that is wrong, and what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class MixedSchedulers(NoChoice):
    """The cliques of one set name different schedulers."""

    def __init__(self, by_scheduler: dict[str, list[str]]) -> None:
        schedulers = "; ".join(f"{name!r} in {', '.join(cliques)}" for name, cliques in sorted(by_scheduler.items()))
        super().__init__(
            "spec.template.cliques[].spec.podSpec.schedulerName",
            f"all cliques of a set must name the same scheduler, found {schedulers}; a gang is placed by one scheduler",
        )


class UnknownBackend(NoChoice):
    """A set asks, by annotation, for a backend that is not registered."""

    def __init__(self, name: str, registered: Iterable[str]) -> None:
        names = ", ".join(registered)
        super().__init__(
            f"metadata.annotations[{SCHEDULER_BACKEND}]", f"no backend {name!r} is registered, only {names}"
        )


class UnknownFallback(ValueError):
    """The configured fallback backend is not registered."""

    def __init__(self, name: str, registered: Iterable[str]) -> None:
        super().__init__(f"no fallback backend {name!r} is registered, only {', '.join(registered)}")


@dataclass(frozen=True)
class Choice:
    """Which backend takes a set, the `schedulerName` of its pods, why, and warnings for the user."""

    backend: Backend
    scheduler_name: str
    why: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Broken:
    """An entry point that could not become a backend, and why."""

    name: str
    origin: str
    why: str


class Registry:
    """The registered backends, in the order that settles ties."""

    def __init__(self, backends: Iterable[Backend], *, fallback: str = FALLBACK, broken: Sequence[Broken] = ()) -> None:
        self._backends: dict[str, Backend] = {}
        self._fallback = fallback
        self._choices: dict[tuple[str, str], Choice] = {}
        self.broken = list(broken)
        for backend in backends:
            self._register(backend)

    @classmethod
    def load(cls, *, fallback: str = FALLBACK) -> Registry:
        """Every backend that an installed package registers: ours first, then others, each by name.

        `fallback` takes the sets whose scheduler no backend claims; it must be registered.
        """
        backends: list[Backend] = []
        broken: list[Broken] = []
        for entry in sorted(entry_points(group=GROUP), key=_rank):
            try:
                backends.append(_checked(entry.load()))
            except Exception as error:  # a third party's import may fail in any way, and must not stop the others
                broken.append(Broken(entry.name, entry.value, f"{type(error).__name__}: {error}"))
        registry = cls(backends, fallback=fallback, broken=broken)
        if registry.get(fallback) is None:
            raise UnknownFallback(fallback, registry.names)
        return registry

    def _register(self, backend: Backend) -> None:
        taken = self._backends.get(backend.name)
        if taken is not None:
            why = f"the name is taken by {type(taken).__module__}.{type(taken).__qualname__}"
            self.broken.append(Broken(backend.name, f"{type(backend).__module__}.{type(backend).__qualname__}", why))
            return
        self._backends[backend.name] = backend

    def __iter__(self) -> Iterator[Backend]:
        return iter(self._backends.values())

    def get(self, name: str) -> Backend | None:
        """The backend of that name."""
        return self._backends.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all backends, in order."""
        return tuple(self._backends)

    def some(self, names: Sequence[str]) -> tuple[Backend, ...]:
        """The backends of these names, in order of registration; all of them where no name is given."""
        unknown = [name for name in names if name not in self._backends]
        if unknown:
            message = f"no backend {', '.join(unknown)} is registered, only {', '.join(self.names)}"
            raise CannotStart(message, exit_code=2)
        return tuple(backend for backend in self if not names or backend.name in names)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Every resource that any backend wants to know about."""
        return tuple(dict.fromkeys(resource for backend in self for resource in backend.resources))

    def choose(self, pcs: PodCliqueSet, default_profile: str = "") -> Choice:
        """The backend for a set; raises `NoChoice`, which is an admission error."""
        override = pcs.metadata.annotations.get(SCHEDULER_BACKEND, "")
        requested = requested_scheduler(pcs, default_profile)
        choice = self._choices.get((override, requested))
        if choice is None:
            choice = self._choices[override, requested] = self._choose(override, requested)
        return choice

    def _choose(self, override: str, requested: str) -> Choice:
        if override:
            backend = self._backends.get(override)
            if backend is None:
                raise UnknownBackend(override, self.names)
            return Choice(backend, backend.scheduler_name(requested), f"the annotation {SCHEDULER_BACKEND} names it")
        claimers = [backend for backend in self if backend.claims(requested)]
        if not claimers:
            return self._fall_back(requested)
        first, *others = claimers
        warnings = (
            (
                f"schedulerName {requested!r} is claimed by {' and '.join(b.name for b in claimers)}; {first.name} was "
                f"registered first and takes it (set the annotation {SCHEDULER_BACKEND} to choose)",
            )
            if others
            else ()
        )
        return Choice(first, first.scheduler_name(requested), f"it claims schedulerName {requested!r}", warnings)

    def _fall_back(self, requested: str) -> Choice:
        backend = self._backends[self._fallback]
        name = backend.scheduler_name(requested)
        warning = (
            f"no backend claims schedulerName {requested!r}; {backend.name} takes it and pods get schedulerName "
            f"{name!r} (registered: {', '.join(self.names)})"
        )
        return Choice(backend, name, "no backend claims the scheduler's name", (warning,))


def requested_scheduler(pcs: PodCliqueSet, default_profile: str = "") -> str:
    """The scheduler that all cliques of a set name; an empty name means the default profile, else kube-scheduler."""
    by_scheduler: dict[str, list[str]] = defaultdict(list)
    for clique in pcs.spec.template.cliques:
        named = str(clique.spec.pod_spec.get("schedulerName") or "")
        by_scheduler[named or default_profile or KUBE_SCHEDULER].append(clique.name)
    if len(by_scheduler) > 1:
        raise MixedSchedulers(by_scheduler)
    return next(iter(by_scheduler), default_profile or KUBE_SCHEDULER)


def _rank(entry: EntryPoint) -> tuple[bool, str]:
    return not entry.value.startswith("spinney.backends."), entry.name


def _checked(candidate: Backend) -> Backend:
    missing = [member for member in _MEMBERS if not hasattr(candidate, member)]
    if missing:
        raise TypeError(f"a backend needs {', '.join(missing)}; see spinney.backends.interface.Backend")
    return candidate
