"""The ConfigMaps and Secrets that a pod needs to start."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api.core import ConfigMap, Pod, Secret
from spinney.api.pod import Container, Volume

Reference = tuple[type[ConfigMap] | type[Secret], str]


def references(pod: Pod) -> list[Reference]:
    """Each non-optional ConfigMap and Secret once; projected volumes are ignored."""
    required = [reference for volume in pod.spec.volumes for reference in _of_volume(volume)]
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        required += _of_container(container)
    return list(dict.fromkeys(required))


def _of_volume(volume: Volume) -> Iterator[Reference]:
    if volume.config_map is not None and not volume.config_map.optional:
        yield ConfigMap, volume.config_map.name
    if volume.secret is not None and not volume.secret.optional:
        yield Secret, volume.secret.secret_name


def _of_container(container: Container) -> Iterator[Reference]:
    for variable in container.env:
        source = variable.value_from
        if source is None:
            continue
        if source.config_map_key_ref is not None and not source.config_map_key_ref.optional:
            yield ConfigMap, source.config_map_key_ref.name
        if source.secret_key_ref is not None and not source.secret_key_ref.optional:
            yield Secret, source.secret_key_ref.name
    for group in container.env_from:
        if group.config_map_ref is not None and not group.config_map_ref.optional:
            yield ConfigMap, group.config_map_ref.name
        if group.secret_ref is not None and not group.secret_ref.optional:
            yield Secret, group.secret_ref.name
