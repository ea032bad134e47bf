"""What the hooks of a replica did, and what one does right now."""
