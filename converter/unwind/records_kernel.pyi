from traceferry.model import Array

def records(
    d: Array, big: bool, is_debug: bool, state: Array, place: Array, start: Array, end: Array, cie: Array
) -> None: ...
def ranges(
    d: Array,
    big: bool,
    word: int,
    address: int,
    encoding: Array,
    segment_size: Array,
    has_data: Array,
    start: Array,
    end: Array,
    first: Array,
    size: Array,
    code: Array,
) -> None: ...
