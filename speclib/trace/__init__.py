"""What every device did and when: events, their statistics, their rounds."""
