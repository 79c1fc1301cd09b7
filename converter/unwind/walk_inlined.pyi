GOES_ON: int
ENDED: int
IS_WANTED: int
INVALID: int
