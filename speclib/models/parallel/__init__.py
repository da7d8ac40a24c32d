"""One model on several devices: ranks, tensor parallelism, layers that share an input."""
