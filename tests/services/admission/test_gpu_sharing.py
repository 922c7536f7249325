"""Pods that ask for a part of a GPU."""

from __future__ import annotations

import pytest

from spinney.kube.chance import Chance
from spinney.services.admission import device_isolation, gpu_sharing
from spinney.services.admission.webhooks import alias_problems
from tests import make


def pod(*, gpus: int = 0, **annotations: str) -> make.PodBuilder:
    """A pod with annotations; underscores stand for dashes."""
    built = make.pod("p").annotations(**annotations)
    return built.gpus(gpus) if gpus else built


@pytest.mark.parametrize(
    ("built", "says"),
    [
        (pod(gpu_fraction="0.5", gpu_memory="1000"), "exclude each other"),
        (pod(gpu_fraction="0.5", gpus=1), "cannot be asked for by one pod"),
        (pod(gpu_fraction="1"), "above 0 and below 1"),
        (pod(gpu_fraction="NaN"), "above 0 and below 1"),
        (pod(gpu_fraction="-0.5"), "above 0 and below 1"),
        (pod(gpu_fraction="1e-400"), "above 0 and below 1"),
        (pod(gpu_fraction="0.5\n"), "above 0 and below 1"),
        (pod(gpu_memory="0"), "whole number of MiB"),
        (pod(gpu_memory="1Gi"), "whole number of MiB"),
        (pod(gpu_fraction="0.5", gpu_fraction_num_devices="0"), "whole number above 0"),
        (pod(gpu_fraction_num_devices="2"), "needs gpu-fraction or gpu-memory"),
        (pod(mps="true"), "for pods that ask for a part"),
        (pod(gpu_fraction="0.5", gpu_fraction_container_name="other"), "not a container of the pod"),
    ],
)
def test_wishes_that_cannot_be_granted(built: make.PodBuilder, says: str) -> None:
    """Each bad wish is refused with what was found and what is allowed."""
    assert says in "; ".join(gpu_sharing.problems(built.build(), sharing_is_on=True))


@pytest.mark.parametrize(
    "built",
    [pod(), pod(gpus=2), pod(gpu_fraction="0.5"), pod(gpu_fraction="5e-1"), pod(gpu_memory="2000", mps="true")],
)
def test_wishes_that_can_be_granted(built: make.PodBuilder) -> None:
    """Whole GPUs, fractions as decimal or scientific, and memory are fine."""
    assert gpu_sharing.problems(built.build(), sharing_is_on=True) == []


def test_sharing_that_is_off_refuses_parts() -> None:
    """The message says what to ask for instead."""
    assert "GPU sharing is disabled" in gpu_sharing.problems(pod(gpu_fraction="0.5").build(), sharing_is_on=False)[0]


def test_a_sharing_pod_reads_its_devices_from_config_maps() -> None:
    """The container refers to the binder's config maps, and doing it twice changes nothing."""
    document = pod(gpu_fraction="0.5").build()
    gpu_sharing.mount_sharing_config(document, Chance(1), "nvidia")
    name = document["metadata"]["annotations"]["runai/shared-gpu-configmap"]
    container = document["spec"]["containers"][0]
    assert [variable["valueFrom"]["configMapKeyRef"]["name"] for variable in container["env"]] == [f"{name}-0"] * 3
    assert container["envFrom"] == [{"configMapRef": {"name": f"{name}-0-evar", "optional": False}}]
    assert document["spec"]["volumes"][0]["configMap"]["name"] == f"{name}-0"
    assert document["spec"]["runtimeClassName"] == "nvidia"
    before = str(document)
    gpu_sharing.mount_sharing_config(document, Chance(2), "nvidia")
    assert str(document) == before


def test_a_long_owner_name_still_makes_a_valid_volume_name() -> None:
    """Names of volumes are labels: 63 characters at most."""
    document = pod(gpu_fraction="0.5").build()
    document["metadata"]["ownerReferences"] = [{"name": "x" * 200, "kind": "Job", "uid": "u", "apiVersion": "batch/v1"}]
    gpu_sharing.mount_sharing_config(document, Chance(1), "")
    assert len(document["spec"]["volumes"][0]["name"]) <= 63


def test_containers_may_not_choose_devices() -> None:
    """NVIDIA_VISIBLE_DEVICES is for the device plugin; containers without GPUs see none."""
    document = pod().build()
    document["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    assert "may only be 'void' or 'none'" in device_isolation.problems(document, None)[0]
    plain = pod().build()
    device_isolation.hide_devices(plain)
    assert plain["spec"]["containers"][0]["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


def test_aliases_of_topology_levels_are_unambiguous() -> None:
    """An alias may neither repeat nor be the label of a level."""
    levels = [
        {"nodeLabel": "zone", "alias": "z"},
        {"nodeLabel": "rack", "alias": "z"},
        {"nodeLabel": "h", "alias": "zone"},
    ]
    assert len(alias_problems(levels)) == 2
