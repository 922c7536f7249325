"""Plans what a set replica needs next, and applies it."""
