"""Definitions come from the types, and `spinney crds` prints them."""

from __future__ import annotations

import json
from typing import Annotated, ClassVar

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from spinney.api.crd import FOREIGN_GROUPS, OUR_GROUPS, crds, definition
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Conditions, Json, Object, Resource, Struct, decode
from spinney.api.podgang import PodGang
from spinney.api.quantity import Quantity
from spinney.api.schema import REQUIRED, Definition, Int32, Scale, default, rule, schema
from spinney.api.structural import SchemaError, object_schema
from spinney.cli.installation.crds import crds as command


class Part(Struct, frozen=True):
    """A part."""

    rules: ClassVar[tuple[Json, ...]] = (rule("has(self.size)", "size it"),)

    size: Annotated[Int32 | None, schema(minimum=1)] = None
    amount: Quantity = "0"
    many: int | str | None = None


class Thing(Object, frozen=True):
    """A thing."""

    resource: ClassVar[Resource] = Resource("example.com/v1", "Thing", "things")
    crd: ClassVar[Definition] = Definition(short_names=("th",), scale=Scale(".status.selector"))

    parts: Annotated[tuple[Part, ...], REQUIRED] = ()
    named: dict[str, Part] = msgspec.field(default_factory=dict)
    open: Json = msgspec.field(default_factory=dict)
    mode: Annotated[str, default("fast")] = "fast"
    conditions: Conditions = ()


class TestSchema:
    """A type's schema says what its fields say."""

    def test_fields(self) -> None:
        """Lists, maps, open objects, defaults and required members."""
        thing_schema = object_schema(Thing)
        assert thing_schema["required"] == ["parts"]
        properties = thing_schema["properties"]
        assert properties["metadata"] == {"type": "object"}
        assert properties["mode"] == {"type": "string", "default": "fast"}
        assert properties["open"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        assert properties["parts"]["items"] == properties["named"]["additionalProperties"]
        assert properties["conditions"]["x-kubernetes-list-map-keys"] == ["type"]

    def test_parts(self) -> None:
        """Rules ride on the type, limits on the field; a quantity may be written as a number."""
        part = object_schema(Thing)["properties"]["parts"]["items"]
        assert part["description"] == "A part."
        assert part["x-kubernetes-validations"] == [{"rule": "has(self.size)", "message": "size it"}]
        assert part["properties"]["size"] == {"type": "integer", "format": "int32", "minimum": 1}
        assert part["properties"]["amount"]["x-kubernetes-int-or-string"]
        assert "pattern" in part["properties"]["amount"]
        assert "pattern" not in part["properties"]["many"]

    def test_a_type_that_has_no_schema_is_named(self) -> None:
        """A mistake in a type is found when its CRD is made, and says where."""

        class Bad(Object, frozen=True):
            resource: ClassVar[Resource] = Resource("example.com/v1", "Bad", "bads")

            what: frozenset[str] = frozenset()

        with pytest.raises(SchemaError, match=r"Bad\.what"):
            object_schema(Bad)

    def test_constraints_do_not_stand_in_the_way_of_reading(self) -> None:
        """An object that was stored under other rules is still read."""
        assert decode(Part, b'{"size": -1}') == Part(size=-1)


class TestDefinition:
    """A kind's definition says how it is served."""

    def test_names_scope_and_subresources(self) -> None:
        """What kubectl calls it and how it scales."""
        spec = definition(Thing)["spec"]
        assert (spec["scope"], spec["names"]["singular"], spec["names"]["shortNames"]) == (
            "Namespaced",
            "thing",
            ["th"],
        )
        assert set(spec["versions"][0]["subresources"]) == {"status", "scale"}

    def test_kubectl_get_pcs_shows_ready_after_replicas(self) -> None:
        """READY is a text of ours, as in `0/2`; upstream's columns follow."""
        columns = definition(PodCliqueSet)["spec"]["versions"][0]["additionalPrinterColumns"]
        assert [column["name"] for column in columns][:4] == ["Replicas", "Ready", "Available", "Updated"]
        assert columns[1] == {"name": "Ready", "type": "string", "jsonPath": ".status.ready"}
        assert columns[-1]["name"] == "Age"

    def test_kubectl_get_podgangs_says_why(self) -> None:
        """The phase, and the reason why a gang is not scheduled."""
        columns = definition(PodGang)["spec"]["versions"][0]["additionalPrinterColumns"]
        assert [column["name"] for column in columns if not column.get("priority")] == [
            "Phase",
            "Scheduled",
            "Reason",
            "Age",
        ]


class TestCommand:
    """`spinney crds` prints what a cluster needs."""

    def test_prints_ours_as_yaml_without_anchors(self) -> None:
        """Each document stands alone."""
        result = CliRunner().invoke(command)
        assert result.exit_code == 0
        assert list(yaml.safe_load_all(result.output)) == crds()
        assert len(crds()) == 11
        assert "&id" not in result.output

    def test_prints_one_group_as_json(self) -> None:
        """Groups of other projects come on request."""
        result = CliRunner().invoke(command, ["--group", "scheduling.volcano.sh", "-o", "json"])
        assert [item["spec"]["names"]["kind"] for item in json.loads(result.output)["items"]] == ["PodGroup", "Queue"]

    def test_an_unknown_group_is_refused_with_the_known_ones(self) -> None:
        """The message lists what can be asked for."""
        result = CliRunner().invoke(command, ["--group", "example.com"])
        assert result.exit_code == 2
        assert all(group in result.output for group in OUR_GROUPS + FOREIGN_GROUPS)
