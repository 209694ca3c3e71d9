"""The benchmark: this library beside other ways to do the same work (`make bench`)."""
