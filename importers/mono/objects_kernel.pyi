from typing import Any

from numpy.typing import NDArray

def allocate(
    addresses: NDArray[Any],
    sizes: NDArray[Any],
    classes: NDArray[Any],
    table_address: NDArray[Any],
    number: NDArray[Any],
    class_name: NDArray[Any],
    since: NDArray[Any],
    status: NDArray[Any],
    died: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
def move(
    old: NDArray[Any],
    new: NDArray[Any],
    table_address: NDArray[Any],
    number: NDArray[Any],
    class_name: NDArray[Any],
    since: NDArray[Any],
    status: NDArray[Any],
    died: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
def seen(
    addresses: NDArray[Any],
    table_address: NDArray[Any],
    number: NDArray[Any],
    since: NDArray[Any],
    status: NDArray[Any],
    state: NDArray[Any],
    out: NDArray[Any],
) -> None: ...
def list_alive(
    addresses: NDArray[Any],
    classes: NDArray[Any],
    table_address: NDArray[Any],
    number: NDArray[Any],
    class_name: NDArray[Any],
    since: NDArray[Any],
    status: NDArray[Any],
    state: NDArray[Any],
    out: NDArray[Any],
) -> None: ...
def bury_unlisted(
    table_address: NDArray[Any],
    number: NDArray[Any],
    since: NDArray[Any],
    status: NDArray[Any],
    died: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
def bury_suspects(
    table_address: NDArray[Any],
    number: NDArray[Any],
    since: NDArray[Any],
    status: NDArray[Any],
    died: NDArray[Any],
    state: NDArray[Any],
) -> None: ...
def rehash(
    table_address: NDArray[Any],
    number: NDArray[Any],
    class_name: NDArray[Any],
    since: NDArray[Any],
    status: NDArray[Any],
    to_address: NDArray[Any],
    to_number: NDArray[Any],
    to_class_name: NDArray[Any],
    to_since: NDArray[Any],
    to_status: NDArray[Any],
) -> int: ...
