"""Persistent volumes and their claims."""
