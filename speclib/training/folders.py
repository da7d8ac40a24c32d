"""Where the training data, the prompts and the checkpoints lie."""

from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "data"
PROMPTS = DATA / "prompts"
MODELS = DATA / "models"
