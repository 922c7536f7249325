"""YAML as Kubernetes reads it, bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from spinney.api.yaml_reader import YamlError, documents, read_all_yaml, read_yaml

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_files_read_as_pyyaml_reads_them(path: Path) -> None:
    """For what people write, the bounded reader and PyYAML agree."""
    text = path.read_text()
    assert read_all_yaml(text) == list(yaml.safe_load_all(text))


def test_scalars() -> None:
    """Booleans, null and numbers as YAML 1.1 has them; dates and base sixty are texts."""
    text = "[x, 0x10, 010, 089, 1.0, 1.5, yes, ~, 2001-01-01, '5', 1:30, 1e3, .5, -3, +4, 1_000, 0b11]"
    wanted = ["x", 16, 8, "089", 1, 1.5, True, None, "2001-01-01", "5", "1:30", "1e3", 0.5, -3, 4, 1000, 3]
    assert read_yaml(text) == wanted


def test_merge_keys_and_other_keys() -> None:
    """`<<` fills in what is missing; every key is a string."""
    text = "a: &a {q: 1}\nb: {<<: *a, r: 2}\nc: {<<: [*a, {z: 1}], q: 5}\ntrue: 5\n? 6\n: 7\n"
    assert read_yaml(text) == {
        "a": {"q": 1},
        "b": {"q": 1, "r": 2},
        "c": {"q": 5, "z": 1},
        "true": 5,
        "6": 7,
    }


def test_aliases_are_copies() -> None:
    """A change of one place is none of the other."""
    value = read_yaml("a: &a {b: 1}\nc: *a")
    value["a"]["b"] = 2
    assert value["c"] == {"b": 1}


def test_values_of_merges_count() -> None:
    """A thousand keys merged a hundred times are a hundred thousand values."""
    keys = ", ".join(f"k{number}: 1" for number in range(1000))
    with pytest.raises(YamlError, match="more than 50000 values"):
        read_yaml(f"a: &a {{{keys}}}\nb: {{<<: [{', '.join(['*a'] * 100)}]}}", 50_000)


def test_repeated_keys_are_told() -> None:
    """With their line; the last one counts."""
    (document,) = documents("a: 1\nb: 2\na: 3\n")
    assert (document.value, document.repeated) == ({"a": 3, "b": 2}, ['line 3: key "a" already set in map'])
