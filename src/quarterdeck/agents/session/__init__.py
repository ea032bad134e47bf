"""What sessions with agents have in common, whatever protocol the agent speaks."""
