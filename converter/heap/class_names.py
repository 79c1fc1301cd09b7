"""What a class is called whose name a recording does not tell: also where nothing else of heaps is needed."""

UNKNOWN_CLASS = "[unknown class]"
