"""Heap snapshots: dominators, retained sizes, growth, allocation sites."""
