"""The living replicas: one supervisor each, from preparing to active, asleep, failed or gone."""
