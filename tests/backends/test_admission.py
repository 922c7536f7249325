"""What admission says about a set and its backend."""

from __future__ import annotations

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import convert
from spinney.backends.admission import gang_annotations, review_set
from spinney.backends.kube_scheduler import v1_35, v1_36
from spinney.backends.kube_scheduler.backend import BACKEND
from spinney.backends.served import Served
from spinney.grove.admission import updates
from spinney.grove.admission.problems import Problems
from tests import make

SERVED = Served(frozenset(v1_35.SHAPE.resources))


def topological(**annotations: str) -> PodCliqueSet:
    """A set of two roles, packed as a whole and one of them more tightly."""
    builder = make.pcs("svc").clique("a").clique("b")
    template = builder.object["spec"]["template"]
    template["topologyConstraint"] = {"topologyName": "t", "pack": {"required": "block"}}
    template["cliques"][1]["topologyConstraint"] = {"pack": {"preferred": "rack"}}
    builder.object["metadata"]["annotations"] = {key.replace("_", "/", 1): value for key, value in annotations.items()}
    return convert(PodCliqueSet, builder.build())


OPT_IN = {"grove.io_allow-scheduler-downgrade": "true"}


def test_what_a_scheduler_cannot_express_is_refused_with_field_and_remedy() -> None:
    """Each constraint is named by its own field."""
    review = review_set(BACKEND, topological(), SERVED)
    assert [problem.field for problem in review.problems] == [
        "spec.template.topologyConstraint.pack.required",
        "spec.template.cliques[1].topologyConstraint.pack.preferred",
    ]
    assert (
        "'block' asks for required topology for the gang, which default (scheduling.k8s.io/v1alpha1) cannot express"
        in (review.problems[0].message)
    )
    assert 'grove.io/allow-scheduler-downgrade: "true"' in review.problems[0].message


def test_a_newer_release_can_express_more() -> None:
    """On 1.36 the gang's own constraint passes."""
    review = review_set(BACKEND, topological(), Served(frozenset(v1_36.SHAPE.resources)))
    assert [problem.field for problem in review.problems] == [
        "spec.template.cliques[1].topologyConstraint.pack.preferred"
    ]


def test_a_set_that_opts_in_is_warned_instead() -> None:
    """The user hears what is lost, and the gang carries the permission."""
    pcs = topological(**OPT_IN)
    review = review_set(BACKEND, pcs, SERVED)
    assert review.problems == ()
    assert len(review.warnings) == 2
    assert gang_annotations(BACKEND, pcs, {}) == {"grove.io/allow-scheduler-downgrade": "true"}


def test_an_api_that_is_not_served_is_a_warning() -> None:
    """It may come later; until then the gang says so in a condition."""
    review = review_set(BACKEND, topological(), Served())
    assert review.problems == ()
    assert "serves no API of backend default" in review.warnings[0]


def test_the_backend_of_a_set_cannot_be_changed() -> None:
    """Its pods carry one scheduler's links: another backend means another set."""
    old, new = make.pcs("svc").clique("a").build(), make.pcs("svc").clique("a").build()
    new["metadata"]["annotations"] = {"grove.io/scheduler-backend": "volcano"}
    problems = Problems()
    updates.check(old, new, problems)
    assert "metadata.annotations[grove.io/scheduler-backend]" in problems.text()
    assert "immutable" in problems.text()
