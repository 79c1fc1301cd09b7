"""Writes the .pyi file of each module in Cython's pure-Python mode, from its text: mypy does not read Cython's types.

`make` runs this when a kernel has changed: a .pyi file is made from the source, as the .so beside it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent
HEAD = "from typing import Any\nfrom numpy.typing import NDArray\nfrom typing_extensions import Buffer"
# Every other scalar is an integer; every other array, one of NumPy's.
SCALARS = {"bint": "bool", "double": "float", "float": "float", "void": "None"}
ARRAYS = {"uchar": "Buffer | NDArray[Any]"}


def kernels() -> list[Path]:
    """What imports cython, in the folders that are installed."""
    found = (path for folder in ("converter", "importers", "exporters") for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if "\nimport cython\n" in path.read_text(encoding="utf-8"))


def stub_of(text: str) -> str:
    """The .pyi text for the text of a module. Raises ValueError for a parameter without a type."""
    body = ast.parse(text).body
    lists = [node.value for node in body if isinstance(node, ast.Assign) and _name(node) == "__all__"]
    declared = [stub for node in body for stub in _declared(node)]
    used = {node.id for stub in declared for node in ast.walk(stub) if isinstance(node, ast.Name)}
    used.update(*map(ast.literal_eval, lists))
    imports = [
        f"from {node.module} import {alias.name} as {alias.name}"
        for node in body if isinstance(node, ast.ImportFrom) for alias in node.names if alias.name in used
    ]  # fmt: skip
    return "\n".join([HEAD, *imports, *map(ast.unparse, declared), ""])


def _declared(node: ast.stmt) -> Iterator[ast.stmt]:
    """A function, class, attribute or constant without its body; nothing for other statements. Raises ValueError for a
    parameter without a type."""
    if isinstance(node, ast.FunctionDef):
        node.returns = _returned(node)
        for argument in node.args.args:
            if argument.arg != "self":
                argument.annotation = _python_type(argument.annotation)
        node.decorator_list = [d for d in node.decorator_list if ast.unparse(d) == "property"]
        node.body = [ast.Expr(ast.Constant(...))]
        yield node
    elif isinstance(node, ast.ClassDef):
        node.decorator_list = []
        node.body = [stub for part in node.body for stub in _declared(part)]
        yield node
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield _attribute(node.target.id, _python_type(node.annotation))
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        yield from (_attribute(ast.unparse(name), ast.Name("int")) for name in node.targets[0].elts)
    elif isinstance(node, ast.Assign) and _name(node).isupper():
        yield _attribute(_name(node), ast.parse(_type_of(node.value), mode="eval").body)
    elif isinstance(node, ast.Assign) and "cython.fused_type" in ast.unparse(node.value):
        yield ast.Assign(node.targets, ast.Name("int"), None, lineno=1)


def _attribute(name: str, type_: ast.expr) -> ast.AnnAssign:
    return ast.AnnAssign(ast.Name(name), type_, None, 1)


def _name(node: ast.Assign) -> str:
    return ast.unparse(node.targets[0])


def _returned(node: ast.FunctionDef) -> ast.expr:
    """As declared; where it says a tuple or nothing, as many integers as the function returns."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "cython.returns":
            return _python_type(decorator.args[0])
    if node.returns is not None and ast.unparse(node.returns) != "tuple":
        return _python_type(node.returns)
    values = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None]
    return ast.parse(_type_of(values[0]) if values else "None", mode="eval").body


def _python_type(annotation: ast.expr | None) -> ast.expr:
    """cython.const[cython.int][::1] is an array, (cython.int, cython.int) a pair of integers. Raises ValueError for
    what has no type: it would be a Python object, and slow."""
    if annotation is None:
        raise ValueError("a parameter of a kernel has no type")
    return ast.parse(_type_name(annotation), mode="eval").body


def _type_name(annotation: ast.expr) -> str:
    if isinstance(annotation, ast.Tuple):
        return f"tuple[{', '.join(map(_type_name, annotation.elts))}]"
    if isinstance(annotation, ast.Subscript):
        value = ast.unparse(annotation.value)
        if "::1" in ast.unparse(annotation.slice):
            item = value.removeprefix("cython.const[").removesuffix("]").removeprefix("cython.")
            return ARRAYS.get(item, "NDArray[Any]")
        if value == "cython.const":
            return _type_name(annotation.slice)
        if value.startswith("cython."):
            return "list[int]"
    text = ast.unparse(annotation)
    if text.startswith("cython."):
        return SCALARS.get(text.removeprefix("cython."), "int")
    return "tuple[Any, ...]" if text == "tuple" else text


def _type_of(value: ast.expr) -> str:
    """Of a constant or what a function returns."""
    if isinstance(value, ast.Dict):
        return f"dict[{_type_of(value.keys[0] or value)}, {_type_of(value.values[0])}]"
    if isinstance(value, ast.Tuple):
        types = [_type_of(item) for item in value.elts]
        return "tuple[str, ...]" if set(types) == {"str"} else f"tuple[{', '.join(types)}]"
    if isinstance(value, ast.Constant):
        return type(value.value).__name__
    return "int"


if __name__ == "__main__":
    for path in kernels():
        try:
            text = stub_of(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SystemExit(f"{path.relative_to(ROOT)}: {error}") from None
        target = path.with_suffix(".pyi")
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
