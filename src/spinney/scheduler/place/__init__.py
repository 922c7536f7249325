"""Placement of tasks and gangs on nodes."""
