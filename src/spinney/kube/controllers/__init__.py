"""Controllers and what runs them: work queue, leader election, events, health."""
