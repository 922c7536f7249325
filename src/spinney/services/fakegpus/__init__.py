"""Fake GPUs: a device plugin for clusters whose nodes have none, such as kind on a laptop."""
