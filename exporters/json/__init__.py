"""Streaming JSON, for the Firefox and Gecko exporters."""
