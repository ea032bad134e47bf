"""Creating, listing and describing replicas."""
