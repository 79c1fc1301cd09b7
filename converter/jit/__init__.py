"""Code of JIT compilers: the names that each producer gives it, and where it lay from when to when."""
