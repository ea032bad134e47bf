"""Permission policies of environments and replicas."""
