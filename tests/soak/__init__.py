"""A long run through every fault: `python -m tests.soak`, or `make soak`."""
