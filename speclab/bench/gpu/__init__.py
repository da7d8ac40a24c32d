"""`make gpu-check`: whether every method is exact on this machine's GPUs, and how fast.

For tests, the same checks run on a CPU (``--device cpu``), with small shapes.
"""
