"""The tree comes in; modules without their test file, and test files without module, go out.

`proxy/stream/sse.py` is tested by `tests/stream/test_sse.py`, or by several `test_sse_*.py`.
Folders of `tests` that are no package of `proxy` test the whole product and mirror nothing.
"""

from pathlib import Path

GENERATED = "migrations"


def check_mirror(root: Path) -> list[str]:
    """Both directions of the rule above."""
    modules = find_modules(root)
    tests = find_tests(root)
    untested = [
        f"proxy/{module}.py: no tests/{_test_path(module)}.py"
        for module in sorted(modules)
        if not any(_mirrors(test, module) for test in tests)
    ]
    packages = {str(Path(module).parent) for module in modules}
    orphans = [
        f"tests/{test}.py: no module of proxy that it tests"
        for test in sorted(tests)
        if str(Path(test).parent) in packages
        and not any(_mirrors(test, module) for module in modules)
    ]
    return untested + orphans


def find_modules(root: Path) -> set[str]:
    """`stream/sse` for every module of proxy that holds code of its own."""
    return {
        str(file.relative_to(root / "proxy").with_suffix(""))
        for file in (root / "proxy").rglob("*.py")
        if not file.stem.startswith("__") and GENERATED not in file.parts
    }


def find_tests(root: Path) -> set[str]:
    """`stream/test_sse` for every test file."""
    return {
        str(file.relative_to(root / "tests").with_suffix(""))
        for file in (root / "tests").rglob("test_*.py")
    }


def _test_path(module: str) -> str:
    path = Path(module)
    return str(path.with_name(f"test_{path.name}"))


def _mirrors(test: str, module: str) -> bool:
    wanted = _test_path(module)
    return test == wanted or test.startswith(f"{wanted}_")
