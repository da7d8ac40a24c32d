"""Models: whatever can say which token follows a text.

All of them answer the same questions, those of ``speclib.operations.model.Model``:

- ``toy``: models without weights, for exact acceptance rates;
- ``hf``: checkpoints that transformers loads and torch computes;
- ``parallel``: one such checkpoint computed by several processes, or several of its
  layers at once;
- ``llamacpp``: quantised checkpoints that llama.cpp computes on the CPU.

The other modules help to build them. ``open_pair`` opens what a pair describes, and
builds it. ``checkpoint`` finds, checks and describes the files of a model once:
``zoo`` knows where the embedded ones are, and ``fetch`` brings them where there is no
checkout; ``configuration`` says which models can run, and ``generation_config`` how
tokens are chosen. Every loader then takes one ``loading``. ``weights`` refuses those
that are not the configuration's, and fills a network with the part that a rank keeps.
``preflight`` counts what a pair takes in memory, and refuses what cannot be loaded.
``vocabulary`` stands in for tokens that a draft lacks. ``packaged`` brings models that
a package on the index contains, and ``gguf_checkpoint`` makes a checkpoint of a GGUF
file. ``dilate`` embeds a small model in a larger architecture. ``kv_cache`` keeps every
token where it is, also those that a sliding window has left; ``fixed_rows`` makes
passes of one shape, and ``recorded_pass`` has a GPU repeat them. ``batched`` gives
several requests a model each over one network. ``eagle_head`` drafts from its target's
features. ``packed_linear`` speeds up small batches on CPUs, and ``gpus`` counts GPUs.

``hf``, ``dilate``, ``weights``, ``kv_cache``, ``fixed_rows``, ``recorded_pass``,
``batched``, ``eagle_head``, ``packed_linear``, ``parallel`` and ``llamacpp.export``
import torch; the others do not until something is built.
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
