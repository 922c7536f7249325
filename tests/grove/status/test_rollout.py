"""When an update of a set begins."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.labels import POD_TEMPLATE_HASH
from spinney.api.meta import convert
from spinney.grove.model import revisions
from spinney.grove.status.rollout import new_revision
from tests import make

NOW = datetime(2026, 1, 1, tzinfo=UTC)
THEIRS = "6f7d9c8b5"


@pytest.mark.parametrize(
    ("label", "reported", "begins"),
    [(THEIRS, THEIRS, False), ("ours", "", False), ("ours", "ours", False), ("ours", THEIRS, True)],
)
def test_a_set_that_was_taken_over_is_updated_once_its_template_changes(
    label: str, reported: str, begins: bool
) -> None:
    """Also where its clique has followed the template before the set's status could: its pods have not."""
    pcs = make.pcs("a").clique("w").status(currentGenerationHash=THEIRS).typed(PodCliqueSet)
    template = pcs.spec.template.cliques[0]
    hashes = {"ours": revisions.template_hash(template, ""), THEIRS: THEIRS, "": ""}
    body = {
        "metadata": {"name": "a-0-w", "labels": {POD_TEMPLATE_HASH: hashes[label]}},
        "spec": {"roleName": "w", "podSpec": template.spec.pod_spec},
        "status": {"currentPodTemplateHash": hashes[reported]},
    }
    assert bool(new_revision(pcs, [convert(PodClique, body)], NOW)) is begins
