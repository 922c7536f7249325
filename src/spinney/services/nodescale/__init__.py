"""The node scale adjuster: whole-GPU pods that make autoscalers add nodes for shared GPUs."""
