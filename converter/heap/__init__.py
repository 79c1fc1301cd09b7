"""Heap snapshots: dominators, trees by class, growth, allocation sites."""
