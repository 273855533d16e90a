"""No call of nine values in a row whose meaning is their place: beyond eight, they go by name."""

import ast

from tests.helpers.studying import ROOT

MOST = 8
ROOMS = ("adalayers", "reports", "studies", "search_spaces")


def positional(function):
    names = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def fields(record):
    """Return the fields that a dataclass's constructor takes by position."""
    if any("kw_only=True" in ast.unparse(decorator) for decorator in record.decorator_list):
        return []
    names = []
    for line in record.body:
        if isinstance(line, ast.AnnAssign):
            if ast.unparse(line.annotation).endswith("KW_ONLY"):
                break
            names.append(ast.unparse(line.target))
    return names


def too_long(text, *, records=True):
    """Return what takes more than `MOST` values by position: functions, methods, and dataclasses as `records`."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = positional(node)
        elif (
            records
            and isinstance(node, ast.ClassDef)
            and any("dataclass" in ast.unparse(d) for d in node.decorator_list)
        ):
            names = fields(node)
        else:
            continue
        if len(names) > MOST:
            found.append(f"{node.name} ({len(names)})")
    return found


def test_nothing_takes_nine_values_by_position():
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    assert len(paths) > 50
    # The small frames of a report are filled in one place each: there, functions alone count.
    found = {
        str(path.relative_to(ROOT)): too_long(path.read_text(), records="reports" not in path.parts)
        for path in paths
    }
    assert {path: names for path, names in found.items() if names} == {}
