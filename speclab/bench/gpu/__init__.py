"""`make gpu-check`: checks that methods are exact on this machine's GPUs, and how fast.

For tests, the same checks run on a CPU (``--device cpu``) with small shapes.
"""
