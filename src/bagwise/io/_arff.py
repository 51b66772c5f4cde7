"""ARFF as Weka writes it: bags as a relational attribute, or a flat table with a bag attribute."""

from collections.abc import Iterator, Sequence

from bagwise.io._arff_header import ArffLines, Attribute, read_header, split_pairs, split_values
from bagwise.io._cells import Line, blocks_of_lines, unknown_labels
from bagwise.io._options import Options
from bagwise.io._problems import bad, shown
from bagwise.io._roles import BAG_NAMES, LABEL_NAMES, TABLE_OPTIONS, Columns, Roles, assign_roles
from bagwise.io._rows import Reading, Rows
from bagwise.io._streams import Source

OPTIONS = frozenset({*TABLE_OPTIONS, "label_separator"})

_MAX_WIDTH = 10**6


def open_reading(source: Source, options: Options) -> Reading:
    """Read the header."""
    lines = ArffLines(source)
    attributes = read_header(source, lines, iter(lines))
    relations = [j for j, a in enumerate(attributes) if a.kind == "relational"]
    if len(relations) > 1:
        raise bad(source.path, "there are several relational attributes; bags are one.")
    if relations:
        return _relational(source, attributes, relations[0], options)
    columns = Columns(source.path, [a.name for a in attributes])
    roles = assign_roles(columns, options)
    return Reading(
        source,
        "arff",
        lambda: blocks_of_lines(source.path, _flat_lines(source, attributes, roles), roles),
        guessed={"layout": "flat", **roles.guessed},
        feature_names=roles.feature_names,
        label_columns=roles.label_names,
        label_separator=options.label_separator,
    )


def _data_lines(source: Source) -> Iterator[tuple[int, str]]:
    lines = ArffLines(source)
    stream = iter(lines)
    read_header(source, lines, stream)
    for line in stream:
        yield lines.number, line


def _flat_lines(source: Source, attributes: Sequence[Attribute], roles: Roles) -> Iterator[Line]:
    lines = _data_lines(source)
    cells = ((number, _values(source, line, number, attributes)) for number, line in lines)
    return unknown_labels(cells, roles)


def _values(source: Source, line: str, number: int, attributes: Sequence[Attribute]) -> list[str]:
    """Return the values of a row, dense or sparse."""
    if not (line.startswith("{") and line.endswith("}")):
        values = split_values(line)
        if values is None:
            raise bad(source.path, f"the quotes in {shown(line)} do not match.", line=number)
        return values
    row = [attribute.default for attribute in attributes]
    pairs = split_pairs(line[1:-1])
    if pairs is None or any(position >= len(row) for position, _ in pairs):
        msg = f"a sparse row needs pairs of position and value. Got {shown(line)}."
        raise bad(source.path, msg, line=number)
    for position, value in pairs:
        row[position] = value
    return row


# ------------------------------------------------------------------------------------- relational


def _relational(
    source: Source, attributes: list[Attribute], relation: int, options: Options
) -> Reading:
    for name in ("features", "instance_name", "instance_label"):
        if getattr(options, name) is not None:
            msg = f"A relational ARFF file has no option {name!r}."
            raise ValueError(msg)
    inner = attributes[relation].columns
    if len(inner) > _MAX_WIDTH:
        raise bad(source.path, f"{len(inner)} features are too many.")
    guessed = {"layout": f"relational, instances in {attributes[relation].name!r}"}
    bag = _find_bag(source, attributes, relation, options, guessed)
    label = _find_labels(source, attributes, {relation, bag}, options, guessed)
    matrix = len(label) > 1 or not isinstance(options.label, str | int | None)
    names = [attributes[j].name for j in label]
    n_about = 1 + len(label)
    roles = Roles(
        ("bag", *names, *(a.name for a in inner)),
        0,
        tuple(range(1, n_about)),
        tuple(names) if matrix and label else None,
        tuple(range(n_about, n_about + len(inner))),
        None,
        None,
        allow_nan=bool(options.allow_nan),
    )

    def blocks() -> Iterator[Rows]:
        rows = _instance_lines(source, attributes, relation, bag, label)
        return blocks_of_lines(source.path, unknown_labels(rows, roles), roles)

    return Reading(
        source,
        "arff",
        blocks,
        guessed=guessed,
        feature_names=[a.name for a in inner],
        label_columns=roles.label_names,
        label_separator=options.label_separator,
    )


def _find_bag(
    source: Source,
    attributes: list[Attribute],
    relation: int,
    options: Options,
    guessed: dict[str, str],
) -> int | None:
    columns = Columns(source.path, [a.name for a in attributes])
    if options.bag is not None:
        return columns.position(options.bag, "bag")
    others = [j for j in range(len(attributes)) if j != relation]
    usual = [j for j in others if Columns("", [attributes[j].name]).guess(BAG_NAMES, "") == 0]
    before = [j for j in others if j < relation and attributes[j].kind != "numeric"]
    found = next(iter(usual or before), None)
    guessed["bag"] = "none" if found is None else f"attribute {attributes[found].name!r}"
    return found


def _find_labels(
    source: Source,
    attributes: list[Attribute],
    taken: set[int | None],
    options: Options,
    guessed: dict[str, str],
) -> list[int]:
    columns = Columns(source.path, [a.name for a in attributes])
    if options.label is False:
        return []
    if options.label is not None:
        given = [options.label] if isinstance(options.label, str | int) else options.label
        return [columns.position(column, "label") for column in given]
    others = [j for j in range(len(attributes)) if j not in taken]
    usual = [j for j in others if Columns("", [attributes[j].name]).guess(LABEL_NAMES, "") == 0]
    found = others if len(others) <= 1 or len(usual) != 1 else usual
    if len(found) > 1 and any(sorted(attributes[j].values) != ["0", "1"] for j in found):
        names = ", ".join(attributes[j].name for j in found)
        raise bad(source.path, f"the label may be any of {names}: pass label=.")
    names = ", ".join(repr(attributes[j].name) for j in found)
    guessed["label"] = f"attribute {names}" if found else "none"
    return found


def _instance_lines(
    source: Source, attributes: list[Attribute], relation: int, bag: int | None, label: list[int]
) -> Iterator[Line]:
    """Yield a line for each instance: bag, labels, features."""
    inner = attributes[relation].columns
    seen: dict[str, int] = {}
    for count, (number, line) in enumerate(_data_lines(source)):
        values = _values(source, line, number, attributes)
        if len(values) != len(attributes):
            msg = f"{len(attributes)} values are needed. Got {len(values)}."
            raise bad(source.path, msg, line=number)
        name = str(count) if bag is None else values[bag]
        if name in seen:
            msg = f"bag {shown(name)} is there already, in line {seen[name]}."
            raise bad(source.path, msg, line=number)
        seen[name] = number
        about = [name, *(values[j] for j in label)]
        instances = [row for row in values[relation].split("\n") if row.strip()]
        if not instances:
            raise bad(source.path, f"bag {shown(name)} has no instance.", line=number)
        for i, row in enumerate(instances):
            cells = _values(source, row.strip(), number, inner)
            if len(cells) != len(inner):
                msg = (
                    f"instance {i} of bag {shown(name)} has {len(cells)} values, not {len(inner)}."
                )
                raise bad(source.path, msg, line=number)
            yield number, about + cells
