"""What tests, benchmarks and the screenshot script share."""
