"""Arrow tables in batches: long (one row an instance), or nested (one row a bag)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagwise.bags import Bags, first_nonfinite, is_missing
from bagwise.exceptions import InvalidBagsError
from bagwise.io._columns import as_coded, as_numpy, zip_coded
from bagwise.io._labels import make_label_table
from bagwise.io._options import Options
from bagwise.io._problems import LEAVE_OUT, TAKE_AS_NAN, bad, foreign
from bagwise.io._roles import BAG_NAMES, LABEL_NAMES, TABLE_OPTIONS, Columns, Roles, assign_roles
from bagwise.io._rows import Coded, Reading, Rows
from bagwise.io._streams import Source

OPTIONS = frozenset({*TABLE_OPTIONS, "label_separator", "key"})

_INDEX = "__index_level_"  # how pandas calls the columns of an index


@dataclass(frozen=True)
class ArrowFile:
    """A table on disk: its schema, and its batches with only the columns named."""

    source: Source
    format: str
    schema: Any
    batches: Callable[[Sequence[str]], Iterator[Any]]


def reading_of(file: ArrowFile, options: Options) -> Reading:
    """See a table as nested if it has a column of lists of vectors, else as long."""
    with foreign(file.source.path, "the names of the columns cannot be read"):
        names = [name for name in file.schema.names if not name.startswith(_INDEX)]
    columns = Columns(file.source.path, names)
    nested = [name for name in names if _is_nested(file.schema.field(name).type)]
    if options.key is not None:
        nested = [names[columns.position(options.key, "key")]]
    if len(nested) > 1:
        msg = f"several columns hold lists of vectors ({', '.join(nested)}): pass key=."
        raise bad(file.source.path, msg)
    if nested:
        return _nested(file, columns, nested[0], options)
    roles = assign_roles(columns, options)
    for name in roles.feature_names:
        kind = file.schema.field(name).type
        if not _is_numeric(kind):
            msg = f"column {name!r} has type {kind}, and features are numbers: pass features=."
            raise bad(file.source.path, msg)
    return Reading(
        file.source,
        file.format,
        lambda: _long_blocks(file, roles),
        guessed=roles.guessed,
        feature_names=roles.feature_names,
        unit="row",
        text=False,
        label_columns=roles.label_names,
        label_separator=options.label_separator,
    )


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    )


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    is_any = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in is_any)


def _is_nested(kind: Any) -> bool:
    return _is_list(kind) and _is_list(kind.value_type)


# ------------------------------------------------------------------------------------ long tables


def _long_blocks(file: ArrowFile, roles: Roles) -> Iterator[Rows]:
    used = [roles.bag, *roles.label, *roles.features]
    used += [j for j in (roles.instance_name, roles.instance_label) if j is not None]
    names = list(dict.fromkeys(roles.names[j] for j in used))
    single = all(
        str(file.schema.field(name).type) in ("float", "halffloat") for name in roles.feature_names
    )
    first = 0
    for batch in file.batches(names):
        with foreign(file.source.path, "the table cannot be read"):
            rows = _long_rows(
                file.source, batch, roles, np.float32 if single else np.float64, first
            )
        yield rows
        first += len(rows)


def _long_rows(source: Source, batch: Any, roles: Roles, dtype: Any, first: int) -> Rows:
    def with_nulls(position: int) -> Any:
        return batch.column(batch.schema.get_field_index(roles.names[position]))

    def column(position: int, way_out: str = "") -> Any:
        values = with_nulls(position)
        if values.null_count:
            row = first + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            msg = f"row {row}: column {roles.names[position]!r}: the value is missing.{way_out}"
            raise bad(source.path, msg)
        return values

    matrix = np.empty((batch.num_rows, len(roles.features)), dtype)
    for j, position in enumerate(roles.features):
        if roles.allow_nan and with_nulls(position).null_count:
            matrix[:, j] = with_nulls(position).to_numpy(zero_copy_only=False)
        else:
            matrix[:, j] = as_numpy(column(position, f" {TAKE_AS_NAN}"))
    found = first_nonfinite(matrix, allow_nan=roles.allow_nan)
    if found is not None:
        row, j = found
        value = matrix[row, j]
        msg = f"row {first + row}: column {roles.feature_names[j]!r}: {value} is not finite."
        raise bad(source.path, msg + (f" {TAKE_AS_NAN}" if np.isnan(value) else ""))
    labels: Coded | None = None
    if roles.label_names is not None:
        labels = zip_coded([_coded(with_nulls(j)) for j in roles.label])
    elif roles.label:
        labels = _coded(with_nulls(roles.label[0]))
    name, label = roles.instance_name, roles.instance_label
    return Rows(
        matrix,
        _coded(column(roles.bag)),
        labels,
        None if name is None else np.array(column(name).to_pylist(), dtype=np.str_),
        None if label is None else _coded(column(label)),
        lambda row: first + row,
    )


def _coded(column: Any) -> Coded:
    if _is_list(column.type):
        lists = column.to_pylist()
        return Coded.of([None if one is None else tuple(map(str, one)) for one in lists])
    return as_coded(column)


# ---------------------------------------------------------------------------------- nested tables


def _nested(file: ArrowFile, columns: Columns, key: str, options: Options) -> Reading:
    for name in ("features", "instance_name", "instance_label"):
        if getattr(options, name) is not None:
            msg = f"A table with one row a bag has no option {name!r}."
            raise ValueError(msg)
    guessed = {} if options.key is not None else {"instances": f"column {key!r}"}

    def choose(given: Any, role: str, known: Sequence[str]) -> str | None:
        if given is False:
            return None
        position = columns.guess(known, role) if given is None else columns.position(given, role)
        if position is None:
            return None
        if given is None:
            guessed[role] = f"column {columns.names[position]!r}"
        return columns.names[position]

    bag = choose(options.bag, "bag", BAG_NAMES)
    names: list[str] | None = None
    if isinstance(options.label, Sequence) and not isinstance(options.label, str):
        names = [columns.names[columns.position(c, "label")] for c in options.label]
        label = None
    else:
        label = choose(options.label, "label", LABEL_NAMES)

    def pieces() -> Iterator[Bags]:
        about = [name for name in dict.fromkeys([bag, label, *(names or ())]) if name is not None]
        known = _about_bags(file, about, bag, label, names, options)
        shared = {"label_names": known.pop("names", None), "allow_nan": bool(options.allow_nan)}
        has_label = known.pop("has_label", None)
        first = 0
        for batch in file.batches([key]):
            if batch.num_rows:
                rows = slice(first, first + batch.num_rows)
                if any(len(values) < rows.stop for values in known.values()):
                    raise bad(file.source.path, "the columns have different lengths.")
                aligned = {what: values[rows] for what, values in known.items()}
                bags = _bags_of(file.source, batch.column(0), aligned, shared, first)
                if has_label is None or has_label[rows].all():
                    yield bags
                elif has_label[rows].any():
                    yield bags[has_label[rows]]
            first += batch.num_rows

    return Reading(file.source, file.format, pieces=pieces, guessed=guessed)


def _about_bags(
    file: ArrowFile,
    about: list[str],
    bag: str | None,
    label: str | None,
    columns: list[str] | None,
    options: Options,
) -> dict[str, NDArray[Any]]:
    """Read what is said about the bags, before any of them."""
    if not about:
        return {}
    values: dict[str, list[Any]] = {name: [] for name in about}
    with foreign(file.source.path, "the columns about the bags cannot be read"):
        for batch in file.batches(about):
            for name in about:
                values[name].extend(batch.column(batch.schema.get_field_index(name)).to_pylist())
    known: dict[str, NDArray[Any]] = {}
    for name, column in values.items():
        missing = is_missing(np.array([*column, None], dtype=object))[:-1]
        if not missing.any():
            continue
        if name == bag or options.on_missing_label != "drop":
            way_out = "" if name == bag else f" {LEAVE_OUT}"
            msg = f"row {np.argmax(missing)}: column {name!r}: the value is missing.{way_out}"
            raise bad(file.source.path, msg)
        if missing.all():
            raise bad(file.source.path, f"column {name!r}: no bag has a label.")
        known["has_label"] = known.get("has_label", True) & ~missing
        present = column[int(np.argmin(missing))]  # stands in for those that are left out
        values[name] = [present if gone else v for v, gone in zip(column, missing, strict=True)]
    if bag is not None:
        known["bag_names"] = np.array(list(map(str, values[bag])), dtype=np.str_)
    coded: Coded | None = None
    if columns is not None:
        coded = Coded.of(list(zip(*(values[name] for name in columns), strict=True)))
    elif label is not None:
        lists = _is_list(file.schema.field(label).type)
        coded = Coded.of([tuple(map(str, v)) if lists else v for v in values[label]])
    if coded is not None and coded.values:
        table = make_label_table(
            file.source.path,
            coded.values,
            text=False,
            separator=options.label_separator,
            columns=columns,
        )
        known["labels"] = table.rows[coded.codes]
        if table.names is not None:
            known["names"] = np.array(table.names)
    return known


def _bags_of(
    source: Source, column: Any, aligned: dict[str, Any], shared: dict[str, Any], first: int
) -> Bags:
    try:
        with foreign(source.path, "the bags cannot be read"):
            return Bags.from_arrow(column, **aligned, **shared)
    except InvalidBagsError as error:
        if len(column) == 1:
            name = aligned.get("bag_names")
            which = f"bag {first}" if name is None else f"bag {first} ({str(name[0])!r})"
            raise bad(source.path, f"{which}: {error}") from error
    for i in range(len(column)):  # one of these bags is bad: find out which
        one = {what: values[i : i + 1] for what, values in aligned.items()}
        _bags_of(source, column.slice(i, 1), one, shared, first + i)
    raise bad(
        source.path, f"the bags in rows {first} to {first + len(column)} do not fit together."
    )
