"""What `qd doctor` looks at, one module per subject."""
