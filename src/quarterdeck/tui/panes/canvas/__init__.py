"""The canvas of a replica: plans, reports and other files, to be read, saved and put there."""
