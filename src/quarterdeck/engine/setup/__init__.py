"""What happens before a workspace is ready: files, skills and instructions installed, hooks run."""
