"""`make gpu-check`: whether every method is exact on this machine's GPUs, and how fast.

The same checks run on a CPU (``--device cpu``), with small shapes: that is how they are
tested.
"""
