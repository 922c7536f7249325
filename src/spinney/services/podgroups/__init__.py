"""The PodGroup controller and the PodGroup webhook."""
