"""Code of JIT compilers: the names that each producer gives it, and its addresses over time."""
