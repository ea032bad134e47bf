"""Takes what engines journal into the service's log, once and in order."""
