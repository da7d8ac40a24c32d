"""The registry: a new method is one file here and one line below.

Methods import ``tokens`` and know ``World`` only: never time, randomness, torch or models.
"""

from .autoregressive import autoregressive
from .pearl import pearl
from .speculative import speculative

METHODS = {
    "autoregressive": autoregressive,
    "speculative": speculative,
    "pearl": pearl,
}

# The settings in which every method is tested; `gamma` is added where a method takes one.
VARIANTS = {
    "pearl": [{}, {"without": "pre-verify"}, {"without": "post-verify"}],
}
