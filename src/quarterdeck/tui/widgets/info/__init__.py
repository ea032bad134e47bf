"""The info panel: what is known of the replica that is worked with, beside its pane."""
