"""`make gpu-check`: checks whether methods are exact on GPUs, and how fast they are.

For tests, the same checks run on a CPU (``--device cpu``) with small shapes.
"""
