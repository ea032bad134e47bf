"""What the service says by itself: webhooks of replicas, and notifications to people."""
