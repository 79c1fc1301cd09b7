from typing import final

@final
class Ranges: ...
