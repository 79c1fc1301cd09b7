import numpy as np
from numpy.typing import NDArray

from traceferry.exporters.perfetto._packets import OutputBuffer

def write_heap_objects(
    out: OutputBuffer,
    type_id: NDArray[np.int32],
    size: NDArray[np.int64],
    offsets: NDArray[np.int64],
    references: NDArray[np.int32],
) -> None: ...
