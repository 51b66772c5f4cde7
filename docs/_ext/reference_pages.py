"""Write the API reference from the library itself: `all_estimators()` and each `__all__`."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import bagwise


def setup(app):
    app.connect("config-inited", write_pages)
    app.connect("autodoc-process-docstring", quote_shapes, priority=400)  # before numpydoc
    app.connect("autodoc-process-docstring", unlink_terms, priority=600)  # after numpydoc
    return {"parallel_read_safe": True}


def quote_shapes(_app, _what, _name, _thing, _options, lines):
    """Quote fitted attributes in shapes: to docutils a name with an underscore behind is a link."""
    lines[:] = [
        re.sub(r"(?<=[( ])(\w+_)(?=[,)])", r"`\1`", line) if "of shape (" in line else line
        for line in lines
    ]


def unlink_terms(_app, _what, _name, _thing, _options, lines):
    """Turn links into scikit-learn's glossary and guide, in inherited docstrings, to plain text."""
    text = re.sub(r":term:`([^`<]+)`", r"``\1``", "\n".join(lines))
    lines[:] = re.sub(r":(?:term|ref):`([^`<]+?)\s*<[a-z_]+>`", r"\1", text).split("\n")


def write_pages(app, _config):
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    estimators = bagwise.all_estimators()
    others = title("Other public names", "=")
    shown = {id(cls) for _, cls in estimators}  # what is public in two places is described once
    for package in ["bagwise", *public_packages()]:
        others += package_section(package, shown)
    pages = {"estimators.rst": estimators_page(estimators), "packages.rst": others}
    for name, lines in pages.items():
        text = "\n".join(lines) + "\n"
        if not (folder / name).exists() or (folder / name).read_text() != text:
            (folder / name).write_text(text)
    listed = {line.strip() for lines in pages.values() for line in lines}
    for page in folder.glob("bagwise.*.rst"):  # autosummary's own, of an earlier build
        if page.stem not in listed:
            page.unlink()


def title(text, line):
    return [text, line * len(text), ""]


def autosummary(names):
    return [".. autosummary::", "   :toctree: .", "", *(f"   {name}" for name in names), ""]


def public_name(cls):
    """Return the address that users import: the package, not its private module."""
    package = [part for part in cls.__module__.split(".") if not part.startswith("_")]
    return ".".join([*package, cls.__name__])


def estimators_page(estimators):
    families: dict[str, list[type]] = {}
    for _, cls in estimators:
        families.setdefault(public_name(cls).rpartition(".")[0], []).append(cls)
    lines = title("Estimators", "=")
    for family, classes in sorted(families.items()):
        lines += [*title(family, "-"), *autosummary(map(public_name, classes))]
    return lines


def public_packages():
    found = (f"bagwise.{module.name}" for module in pkgutil.iter_modules(bagwise.__path__))
    return [name for name in found if not name.startswith(("bagwise._", "bagwise.cli"))]


def package_section(package, shown):
    module = importlib.import_module(package)
    names = []
    for name in getattr(module, "__all__", []):
        thing = getattr(module, name)
        documented = inspect.isclass(thing) or inspect.isfunction(thing)
        if documented and id(thing) not in shown:
            shown.add(id(thing))
            names.append(f"{package}.{name}")
    if not names:
        return []
    summary = (inspect.getdoc(module) or "").partition("\n\n")[0]
    return [*title(package, "-"), summary, "", *autosummary(names)]
