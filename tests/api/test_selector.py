"""Selectors choose what Kubernetes would choose."""

from __future__ import annotations

import pytest

from spinney.api.meta import convert
from spinney.api.selector import (
    LabelSelector,
    Requirement,
    SelectorError,
    matches,
    parse,
)

LABELS = {"app": "web", "tier": "1", "grove.io/podgang": "a-0", "empty": ""}
STRINGS = {
    "": True,
    "app=web": True,
    "app==web": True,
    "app = web": True,
    "app=db": False,
    "app!=db": True,
    "other!=x": True,
    "app in (web, db)": True,
    "app in(db)": False,
    "app notin (db)": True,
    "other notin (db)": True,
    "other in (db)": False,
    "app": True,
    "!app": False,
    "!other": True,
    "empty=": True,
    "empty in ()": True,
    "tier>0,tier<2": True,
    "tier>1": False,
    "app>1": False,
    "grove.io/podgang=a-0,app in (web),!gone": True,
    "app=web,tier=2": False,
}


@pytest.mark.parametrize(("text", "expected"), STRINGS.items())
def test_string_form(text: str, expected: bool) -> None:
    """The language of `kubectl -l`."""
    assert matches(parse(text), LABELS) is expected


@pytest.mark.parametrize("text", ["=a", "a=b=c", "a,,b", "a in b", "-a=b", "a=b c", "a in (b", "a=-b", "a/b/c=d", ","])
def test_what_is_no_selector_is_refused(text: str) -> None:
    """The message names the part that cannot be read."""
    with pytest.raises(SelectorError, match="selector"):
        parse(text)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "2"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}, True),
        ({"matchExpressions": [{"key": "gone", "operator": "NotIn", "values": ["x"]}]}, True),
        ({"matchExpressions": [{"key": "gone", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}]}, True),
    ],
)
def test_object_form(selector: dict[str, object], expected: bool) -> None:
    """All parts of an object must hold; an empty one chooses everything."""
    assert matches(convert(LabelSelector, selector), LABELS) is expected


def test_an_absent_selector_chooses_nothing() -> None:
    """An affinity term without a selector matches no pod."""
    assert not matches(None, LABELS)


def test_an_unknown_operator_is_an_error() -> None:
    """A newer API server's operator must not silently match."""
    with pytest.raises(SelectorError, match="operator 'Like' is not one of"):
        matches(LabelSelector(match_expressions=(Requirement(key="a", operator="Like"),)), {})
