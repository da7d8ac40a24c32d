"""Where the shipped prompts and the checkpoints lie."""

from speclib.paths import DATA

PROMPTS = DATA / "prompts"
MODELS = DATA / "models"
