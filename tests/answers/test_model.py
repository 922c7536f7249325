"""The wire format of answers."""

from __future__ import annotations

import msgspec

from spinney.answers.model import Displacement, Listing, Reason, Workload, WorkloadRef

REF = WorkloadRef(kind="PyTorchJob", api_version="kubeflow.org/v1", namespace="a", name="train")


def test_answers_are_camel_case_and_leave_nothing_out() -> None:
    """A reader finds every field, whether it holds something or not."""
    reason = msgspec.to_builtins(Reason(code="NoRoom", text="no"))
    assert reason == {"code": "NoRoom", "text": "no", "advice": (), "missing": {}}
    assert {"priorityClass", "expectedStart", "line", "hidden"} <= {
        field.encode_name for field in msgspec.structs.fields(Workload)
    }


def test_a_displaced_pod_names_whom_it_goes_for() -> None:
    """`for` is a word of Python's, and the word of the wire."""
    assert msgspec.to_builtins(Displacement(pod="p", workload=None, beneficiary=REF))["for"]["name"] == "train"


def test_a_workload_is_written_as_kubectl_takes_it() -> None:
    """Kind in lower case, a slash, the name."""
    assert str(REF) == "pytorchjob/train"


def test_a_listing_says_what_could_not_be_read() -> None:
    """`partial` is always there, so that an empty list can be told from a refused one."""
    assert msgspec.to_builtins(Listing[Workload](at="now", items=())) == {"at": "now", "items": (), "partial": ()}
