"""GSYM files: reader and writer."""
