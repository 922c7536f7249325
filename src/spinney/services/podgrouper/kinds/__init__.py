"""Grouping rules, one module per family of workload kinds."""
