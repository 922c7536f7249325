"""Kubernetes objects into the plain descriptions that the scheduler's state takes."""
