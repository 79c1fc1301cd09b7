NO_RULE: int
