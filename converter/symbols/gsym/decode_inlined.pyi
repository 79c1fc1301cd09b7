DAMAGES: tuple[str, ...]
