"""Calls: balanced from recorded enters and leaves, added up, and seen as samples of their call paths."""
