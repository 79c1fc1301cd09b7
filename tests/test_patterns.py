"""Regular expressions that are compiled at the first use."""

import copy
import pickle
import re
from collections.abc import Iterator
from importlib import import_module

import pytest
from conftest import PACKAGES, REPO, module_of

from traceferry.common import patterns
from traceferry.common.patterns import compiled_later


def test_it_is_compiled_once_and_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_now = re.compile

    def counted(text: str, flags: int) -> re.Pattern[str]:
        compiled.append(text)
        return compile_now(text, flags)

    monkeypatch.setattr(re, "compile", counted)
    later = compiled_later("a+")
    assert compiled == []
    assert later.match("aa")
    assert later.match("aa")
    assert compiled == ["a+"]


def test_it_does_what_a_pattern_does() -> None:
    later = compiled_later("(a)(?P<rest>b*)", re.IGNORECASE)
    found = later.fullmatch("ABB")
    assert found is not None
    assert found["rest"] == "BB"
    assert later.sub(r"\1", "xabby") == "xay"
    assert later.pattern == "(a)(?P<rest>b*)"
    assert later.groupindex == {"rest": 2}
    assert compiled_later(b"a").match(b"ab") is not None


def test_it_can_be_copied_and_sent_to_another_process() -> None:
    later = compiled_later("a+")
    for another in (copy.deepcopy(later), pickle.loads(pickle.dumps(later))):
        assert another.fullmatch("aaa") is not None


def test_an_error_comes_at_the_first_use() -> None:
    later = compiled_later("(")
    with pytest.raises(re.error):
        later.match("a")


def patterns_in(value: object) -> Iterator[patterns._Later]:
    if type(value) is patterns._Later:
        yield value
    elif isinstance(value, (dict, tuple, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from patterns_in(one)


def test_all_patterns_of_the_project_are_valid() -> None:
    """Those that the tests do not use, too."""
    paths = [path for folder in PACKAGES.values() for path in (REPO / folder).rglob("*.py")]
    modules = [import_module(module_of(path)) for path in paths if path.name != "__main__.py"]
    values = [value for module in modules for name, value in vars(module).items() if not name.startswith("__")]
    found = [one for value in values for one in patterns_in(value)]
    assert len(found) > 200
    for one in found:
        assert isinstance(re.compile(one._text, one._flags), re.Pattern)
