"""Tables of trace_processor that contradict each other: a valid trace, or a FormatError."""

import json
import random
from contextlib import suppress
from pathlib import Path

import numpy as np
from test_perfetto_formats import EVENTS, HEADING
from test_perfetto_traces import CHROME, FIXTURES, OURS, engine, traceferry_trace

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.importers.perfetto.decode import Tables, read_tables
from traceferry.importers.perfetto.map import to_trace
from traceferry.model import TraceBuilder
from traceferry.model.laws import check
from traceferry.trace_processor.results import FLOAT, INTEGER, NULL, STRING, Answer, Column

__all__ = ["engine"]

ODD = (None, -1, 0, 2**63 - 1, -(2**63), 2**31, 2**40, 1.5, float("nan"), float("inf"), "", "x", -2)
ROUNDS = 200


def damaged(column: Column, chance: random.Random) -> Column:
    values = column.values()
    for _ in range(chance.randrange(1, 4)):
        values[chance.randrange(len(values))] = chance.choice([*ODD, chance.choice(values)])
    kind_of = {int: INTEGER, float: FLOAT, str: STRING, type(None): NULL}
    kinds = np.array([kind_of[type(value)] for value in values], np.uint8)
    integers, floats, texts = ([value for value in values if type(value) is kind] for kind in (int, float, str))
    numbers = np.array(integers, np.int64), np.array(floats, float)
    return Column(column.name, kinds, *numbers, np.arange(len(texts), dtype=np.int32), texts, [])


def test_damaged_tables(tmp_path: Path) -> None:
    chrome, systrace = tmp_path / "chrome.json", tmp_path / "systrace.txt"
    chrome.write_text(json.dumps(CHROME))
    systrace.write_text(HEADING + EVENTS)
    paths = [chrome, systrace, traceferry_trace(FIXTURES / OURS[0], tmp_path)]
    sources = [Source(str(path), memoryview(path.read_bytes())) for path in paths]
    known = [(source, read_tables(source, None)) for source in sources]
    n_valid = 0
    for seed in range(ROUNDS):
        chance, (source, tables) = random.Random(seed), known[seed % len(known)]
        answers = dict(tables.answers)
        name = chance.choice([name for name, answer in answers.items() if len(answer)])
        columns = list(answers[name].columns)
        nth = chance.randrange(len(columns))
        columns[nth] = damaged(columns[nth], chance)
        answers[name] = Answer(() if chance.random() < 0.1 else tuple(columns))
        with suppress(FormatError):
            builder = TraceBuilder()
            to_trace(source, Tables(tables.version, answers), builder)
            assert check(builder.done()) == [], (seed, name, columns[nth].name)
            n_valid += 1
    assert n_valid > ROUNDS // 2
