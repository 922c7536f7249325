"""Who one is, and what one may do."""
