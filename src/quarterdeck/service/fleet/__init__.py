"""The active replicas: one workspace manager each, from preparing to deleted."""
