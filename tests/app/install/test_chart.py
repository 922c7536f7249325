"""The chart: generated, and the same installation as `spinney install`, object by object."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from spinney.api.meta import Json
from spinney.app.errors import UserError
from spinney.app.install.chart import chart_files, schema
from spinney.app.install.objects import definitions, objects
from spinney.app.install.values import Values, plain, read_values, setting
from tests.app.install.helm import CHART, run_helm
from tests.app.install.value_sets import VALUE_SETS

SERVED = "monitoring.coreos.com/v1"


def by_place(documents: list[Json]) -> dict[tuple[str, str, str], Json]:
    """Objects by kind, namespace and name."""
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in documents}


def test_generating_the_chart_changes_nothing() -> None:
    """Who changes the installation runs `make chart`."""
    files = chart_files(version("spinney"))
    assert {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()} == set(files)
    assert [name for name, text in files.items() if (CHART / name).read_text() != text] == []


@pytest.mark.parametrize("name", VALUE_SETS)
def test_helm_renders_what_install_prints(name: str, tmp_path: Path) -> None:
    """Both ways to install give the same objects, and helm finds nothing wrong with the chart."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(VALUE_SETS[name]))
    run_helm("lint", "--strict", str(CHART), "-f", str(file), "--kube-version", "1.35.4")
    arguments = ("--namespace", "here", "--kube-version", "1.35.4", "--api-versions", SERVED, "-f", str(file))
    printed = run_helm("template", "spinney", str(CHART), *arguments)
    rendered = by_place([document for document in yaml.safe_load_all(printed) if document])
    values = read_values([VALUE_SETS[name]])
    wanted = by_place([*definitions(), *objects(values, "here", version("spinney"), frozenset({SERVED}))])
    assert rendered.keys() == wanted.keys()
    for place, document in wanted.items():
        # The same data, whatever order JSON and YAML give it.
        assert rendered[place] == json.loads(json.dumps(document)), place


def test_every_value_is_described() -> None:
    """A reader of the schema, of values.yaml or of the README finds out what a value means."""
    described = schema()
    for block in (described, *described["$defs"].values()):
        for name, field in block["properties"].items():
            assert field.get("description"), name
    assert set(plain(Values())) | {"global"} == set(described["properties"])


def test_helm_refuses_what_is_not_a_value() -> None:
    """A typo is refused by helm as by `spinney install`."""
    with pytest.raises(AssertionError, match="replica"):
        run_helm("template", str(CHART), "--kube-version", "1.35.4", "--set", "replica=2")
    with pytest.raises(UserError, match="replica"):
        read_values([setting("replica=2")])


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"config": {"bindr": {"replicas": 2}}}, "bindr"),
        ({"config": {"binder": {"service": {"enabld": False}}}}, "enabld"),
        ({"config": {"binder": {"replicas": "two"}}}, "integer"),
        ({"shards": [{"name": "a", "spec": {"partitionLabelVal": "b"}}]}, "partitionLabelVal"),
        ({"grove": {"config": {"scheduler": {"fallback": "kai"}}}}, "fallback"),
        ({"dashboard": {"config": {"logn": "token"}}}, "logn"),
        ({"certificates": {"mode": "supplied"}}, "caBundle"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_typos_in_what_is_handed_on_were_accepted(wrong: Json, named: str, tmp_path: Path) -> None:
    """The platform only logged that Config was refused, again and again, and nothing else followed the values."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(wrong))
    with pytest.raises(AssertionError, match=named):
        run_helm("template", str(CHART), "--kube-version", "1.35.4", "-f", str(file))
    with pytest.raises(UserError, match=named):
        read_values([wrong])


@pytest.mark.parametrize(
    "wrong", [{"shards": [{"name": "a"}, {"name": "a"}]}, {"backends": {"deployments": [{"name": "a"}, {"name": "a"}]}}]
)
def test_two_of_the_same_name_are_refused(wrong: Json) -> None:
    """The second object would replace the first."""
    with pytest.raises(UserError, match="two have the same name"):
        read_values([wrong])


def test_single_values_win_over_files() -> None:
    """`--set` is the last layer, and reads numbers and truth values as YAML does."""
    values = read_values(
        [{"replicas": 3, "image": {"tag": "a"}}, setting("replicas=2"), setting("grove.enabled=false")]
    )
    assert (values.replicas, values.image.tag, values.grove.enabled) == (2, "a", False)
