"""Which of the refusals on a gang's pods tells why the gang waits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

# kube-scheduler, and schedulers built on it, begin the judgement of a pod so.
_NAMES_NODES = re.compile(r"\b\d+/\d+ nodes are available")


def names_nodes(text: str) -> bool:
    """Whether a refusal says what the nodes lack."""
    return bool(_NAMES_NODES.search(text))


def most_telling(refusals: Iterable[str]) -> str:
    """The most common refusal that names nodes, else the most common one; empty if there is none.

    From 1.36 on kube-scheduler finds no node for one pod of a gang, and says of the others that they wait for it.
    """
    counts = Counter(filter(None, refusals))
    return max(counts, key=lambda text: (names_nodes(text), counts[text], text), default="")
