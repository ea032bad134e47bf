"""Making, listing and describing replicas."""
