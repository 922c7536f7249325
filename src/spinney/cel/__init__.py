"""Kubernetes' dialect of CEL: compile an expression over declared variables, then evaluate it."""
