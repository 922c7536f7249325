"""What may refuse or change a write: webhooks, policies, limit ranges and quotas."""
