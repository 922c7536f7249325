"""Answers of an admission webhook."""

import base64

import msgspec

from spinney.kube.admission.review import changed, refused


def test_a_change_is_told_as_a_json_patch() -> None:
    """Only what differs is in the patch."""
    old = {"metadata": {"labels": {"a/b": "1", "gone": "x"}}, "spec": {"list": [1, 2]}}
    new = {"metadata": {"labels": {"a/b": "2"}}, "spec": {"list": [1, 2], "more": {}}}
    answer = changed({"uid": "u", "object": old}, new)
    assert answer["allowed"] is True
    assert len(msgspec.json.decode(base64.b64decode(answer["patch"]))) == 3


def test_no_change_needs_no_patch() -> None:
    """An object that is as wanted is let through untouched."""
    assert "patch" not in changed({"uid": "u", "object": {"a": 1}}, {"a": 1})


def test_a_refusal_tells_why() -> None:
    """The message reaches whoever sent the object."""
    assert refused({"uid": "u"}, "no")["status"]["message"] == "no"
