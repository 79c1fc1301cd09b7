"""Breakpad's text symbol files."""
