"""Replicas as pods of a Kubernetes cluster."""
