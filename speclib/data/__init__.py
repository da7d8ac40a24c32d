"""Reads the project's data files: pairs, places, latencies, prompts, retrieval."""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "latency",
    "layer_groups",
    "pairs",
    "placement",
    "prompts",
    "retrieval",
    "shapes",
    "toml_files",
)
