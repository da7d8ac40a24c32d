"""Tasks that the embedded models are trained on, and the shipped prompts of the same kinds."""
