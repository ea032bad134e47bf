"""The canvas as the service sees it: uploads that wait, and what needs the engine."""
