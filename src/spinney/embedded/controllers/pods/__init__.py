"""Controllers of any pod: eviction, disruption budgets, garbage collection."""
