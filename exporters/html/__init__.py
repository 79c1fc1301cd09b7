"""One self-contained page that shows what matters of a recording by itself, and hands all of it to the viewers.

The page holds call trees over time, the sections of `info`, sources with text, and, embedded compressed, what the
exporters for the viewers write. It makes no request to anybody; that of
`view --in page` asks the server from which it comes for sources and instructions.
"""

from traceferry.exporters.html.page import Embeddable, write

__all__ = ["Embeddable", "write"]
