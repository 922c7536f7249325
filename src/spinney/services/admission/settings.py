"""What admission does beyond the rules that always hold."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.meta import Struct


class AdmissionSettings(Struct, frozen=True):
    """Upstream's switches, and ours for queues."""

    scheduler_name: str = labels.KAI_SCHEDULER
    queue_label: str = labels.QUEUE
    # Parts of GPUs may be asked for.
    gpu_sharing: bool = False
    # Containers may not choose their own devices past the device plugin.
    block_visible_devices: bool = False
    # The runtime class of pods that share a GPU; empty leaves it alone.
    fraction_runtime_class: str = "nvidia"
    # Containers that share a GPU learn how much of its memory is theirs, for whatever enforces that.
    memory_limit: bool = False
    # Pods with a queue and no scheduler of their own become ours.
    adopt_queued_pods: bool = False
    # Who may use a queue is asked of the API server: verb `use` on the Queue.
    check_queue_access: bool = False
    # Pods whose queue is at its limit are created behind a gate that autoscalers respect.
    gate_blocked_pods: bool = False
