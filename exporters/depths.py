"""How deep stacks are in formats that list all functions of each: together they grow with the square of the depth. A
deeper stack keeps its outermost and its innermost functions, with one between them that says so."""

MAX_DEPTH, INNERMOST = 512, 127
OUTERMOST = MAX_DEPTH - INNERMOST - 1
CUT = "[frames left out]"
