"""Fair shares of queues, and the order in which jobs are served."""
