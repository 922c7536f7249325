"""Settings of the admission service."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.meta import Struct


class AdmissionSettings(Struct, frozen=True):
    """Upstream's switches, and ours for queues."""

    scheduler_name: str = labels.KAI_SCHEDULER
    queue_label: str = labels.QUEUE
    # Pods may request parts of GPUs.
    gpu_sharing: bool = False
    # Containers may not choose their own devices past the device plugin.
    block_visible_devices: bool = False
    # The runtime class of pods that share a GPU; empty leaves it alone.
    fraction_runtime_class: str = "nvidia"
    # Containers that share a GPU get their memory limit as a variable, for whatever enforces it.
    memory_limit: bool = False
    # Pods with a queue and no scheduler of their own get our scheduler.
    adopt_queued_pods: bool = False
    # Senders need the verb `use` on the Queue.
    check_queue_access: bool = False
    # Pods of queues at their limit get a scheduling gate, which autoscalers respect.
    gate_blocked_pods: bool = False
