"""Bytes as characters of a page, against arithmetic on one large number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.exporters.html._digits import pairs_of
from traceferry.exporters.html.embed import ALPHABET, PAIRS, as_text


@given(st.binary(max_size=60))
def test_13_bits_are_two_characters(data: bytes) -> None:
    padded = data + bytes(-len(data) % 13)
    number, n_pairs = int.from_bytes(padded, "big"), len(padded) * 8 // 13
    values = [number >> 13 * (n_pairs - 1 - nth) & 0x1FFF for nth in range(n_pairs)]
    assert as_text(data) == bytes(ALPHABET[digit] for value in values for digit in divmod(value, len(ALPHABET)))


@pytest.mark.parametrize(("n_bytes", "n_pairs"), [(12, 8192), (13, 8191), (26, 8193)])
def test_data_that_is_no_whole_groups(n_bytes: int, n_pairs: int) -> None:
    with pytest.raises(ValueError, match="pairs_of"):
        pairs_of(bytes(n_bytes), np.resize(PAIRS, n_pairs))
