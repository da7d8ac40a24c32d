"""Readers of the project's own files: pairs, places, latencies, prompts, retrieval."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "hardware",
    "latency",
    "pairs",
    "placement",
    "prompts",
    "retrieval",
    "shapes",
    "toml_files",
    "training_tasks.code",
    "training_tasks.corpus",
    "training_tasks.tasks",
)
