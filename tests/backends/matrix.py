"""The gangs of the golden files: roles, minimums, topology, priorities, long names."""

from __future__ import annotations

from collections.abc import Callable

from tests import make


def gangs() -> dict[str, make.GangBuilder]:
    """A fresh builder for each gang, by what is special about it."""
    return {title: build() for title, build in _GANGS.items()}


def _base(name: str = "svc-0") -> make.GangBuilder:
    return make.gang(name, "ml", uid="11111111-2222-3333-4444-555555555555").label("app", "svc")


def _roles() -> make.GangBuilder:
    return _base().group("router", 1).group("prefill", 2, pods=4).group("decode", 4, pods=8)


def _twelve() -> make.GangBuilder:
    gang = _base()
    for index in range(12):
        gang.group(f"role{index}", 1)
    return gang


def _ten_configs() -> make.GangBuilder:
    gang = _base()
    for index in range(10):
        gang.group(f"p{index}", 1).group(f"d{index}", 1).config(
            f"sg-{index}", [f"p{index}", f"d{index}"], required="rack"
        )
    return gang


def _every_level() -> make.GangBuilder:
    gang = _base().annotate("grove.io/topology-name", "dc").packed(required="zone", preferred="block")
    gang.group("router", 1).group("prefill", 2, required="host").group("decode", 2, preferred="host")
    return gang.config("sg-0", ["prefill", "decode"], required="rack", preferred="host")


def _reusing() -> make.GangBuilder:
    gang = _base().group("workers", 2)
    gang.object["spec"]["reuseReservationRef"] = {"namespace": "ml", "name": "svc-0"}
    return gang


def _queued() -> make.GangBuilder:
    gang = _base().priority("inference-high").group("workers", 2)
    for key in (
        "kai.scheduler/queue",
        "scheduling.grove.io/volcano-queue",
        "quota.scheduling.koordinator.sh/name",
        "yunikorn.apache.org/queue",
    ):
        gang.annotate(key, "team-a")
    return gang


_GANGS: dict[str, Callable[[], make.GangBuilder]] = {
    "one role": lambda: _base().group("workers", 2),
    "one elastic role": lambda: _base().group("workers", 2, pods=5),
    "three roles": _roles,
    "gang packed": lambda: _roles().packed(required="block"),
    "gang packed by preference": lambda: _roles().packed(preferred="rack"),
    "only role packed": lambda: _base().packed(required="block").group("workers", 4, required="rack"),
    "packed at every level": _every_level,
    "priority and queue": _queued,
    "reused reservation": _reusing,
    "twelve roles": _twelve,
    "ten groups of roles": _ten_configs,
    "role without minimum": lambda: _base().group("workers", 2).group("spare", 0, pods=3),
    "no minimum at all": lambda: _base().group("workers", 0, pods=2),
    "long names": lambda: _base("a-very-long-name-that-somebody-thought-would-be-helpful-0").group("workers-of-it", 2),
}
