"""What a scheduler cannot do, and what we do instead. Every other cell of the table works as its story tells."""

from __future__ import annotations

from dataclasses import dataclass

from tests.schedulers.stories import otherwise
from tests.schedulers.story import Tell


@dataclass(frozen=True)
class Refused:
    """The set is refused when it is applied, with these words."""

    text: str
    words: str


@dataclass(frozen=True)
class Otherwise:
    """The story ends differently: `tell` is how, and a user is told so."""

    text: str
    tell: Tell


_NO_TOPOLOGY = Refused("refused: it knows no topology", "topology")
_REQUIRED = (
    "required_rack",
    "required_block",
    "required_host",
    "beyond_the_largest_rack",
    "required_with_surplus",
    "broken_by_hand",
)
_ROLES = ("required_role", "role_beyond_the_largest_rack", "required_two_levels")
_PREFERRED = ("preferred_rack", "preferred_beyond")
_WHOLE_GANGS = Refused("refused: topology holds for whole gangs only", "topology")
_NOTHING_TO_SET_UP = Otherwise("refused: it knows no topology", otherwise.topology_refused)
_LABELS = Otherwise("it needs labels of nodes only: without them the gang waits", otherwise.nodes_without_labels)
_MOVES = Otherwise("every pod is replaced; new ones go wherever there is room", otherwise.update_may_move)
_NO_QUEUES = Otherwise("it has no queues: the label of another scheduler means nothing", otherwise.queue_means_nothing)
_ANY_ORDER = Otherwise(
    "it does; gangs that had no placeholders yet start in any order, so one that came later may go first",
    otherwise.restarts_beside_larger_pods,
)

CANNOT: dict[tuple[str, str], Refused | Otherwise] = {
    **{("kube-1.35", name): _NO_TOPOLOGY for name in (*_REQUIRED, *_PREFERRED, *_ROLES)},
    **{("yunikorn", name): _NO_TOPOLOGY for name in (*_REQUIRED, *_PREFERRED, *_ROLES)},
    **{("kube-1.36", name): Refused("refused: it knows no preferences", "preferred") for name in _PREFERRED},
    **{("kube-1.36", name): _WHOLE_GANGS for name in _ROLES},
    **{("koordinator", name): _WHOLE_GANGS for name in _ROLES},
    **{(name, "topology_not_set_up"): _NOTHING_TO_SET_UP for name in ("kube-1.35", "yunikorn")},
    **{(name, "topology_not_set_up"): _LABELS for name in ("kube-1.36", "kai", "spinney")},
    ("yunikorn", "scheduler_restarts"): _ANY_ORDER,
    ("kube-1.35", "unknown_queue"): _NO_QUEUES,
    ("kube-1.36", "unknown_queue"): _NO_QUEUES,
    **{
        (name, "update_keeps_nodes"): _MOVES
        for name in ("kube-1.35", "kube-1.36", "volcano", "koordinator", "yunikorn", "kai")
    },
}
