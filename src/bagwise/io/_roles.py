"""Which column of a table is what: named by the caller, or guessed from its name."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bagwise.io._options import Column, Options
from bagwise.io._problems import bad, shown

BAG_NAMES = ("bag", "bag_id", "bag_name")
LABEL_NAMES = ("y", "label", "labels", "class")
INSTANCE_NAMES = ("instance", "instance_name", "instance_id")
INSTANCE_LABELS = ("instance_label", "instance_y")

#: Options with the names of columns.
TABLE_OPTIONS = ("bag", "label", "features", "instance_name", "instance_label")

_LISTED = 12  # columns that a message lists


@dataclass(frozen=True)
class Roles:
    """Positions of columns by what they are for.

    ``label`` has one position, or several for a matrix of labels (``label_names`` is then set).
    ``allow_nan`` says whether features may be missing.
    """

    names: tuple[str, ...]
    bag: int
    label: tuple[int, ...]
    label_names: tuple[str, ...] | None
    features: tuple[int, ...]
    instance_name: int | None
    instance_label: int | None
    guessed: dict[str, str] = field(default_factory=dict)
    allow_nan: bool = False

    @property
    def feature_names(self) -> list[str]:
        """Names of the feature columns."""
        return [self.names[j] for j in self.features]


class Columns:
    """The names of the columns of one table."""

    def __init__(self, where: object, names: Sequence[str], *, line: int | None = None) -> None:
        self.where, self.line = where, line
        self.names = list(names)
        self._positions: dict[str, int] = {}
        for j, name in enumerate(self.names):
            if name and name in self._positions:
                raise bad(where, f"the column name {shown(name)} occurs twice.", line=line)
            self._positions[name] = j

    def __str__(self) -> str:
        rest = "" if len(self.names) <= _LISTED else f", ... ({len(self.names)} in all)"
        return ", ".join(map(shown, self.names[:_LISTED])) + rest

    def position(self, column: Column, role: str) -> int:
        """Return where a column named by the caller is."""
        if isinstance(column, int) and not isinstance(column, bool):
            if -len(self.names) <= column < len(self.names):
                return column % len(self.names)
        elif column in self._positions:
            return self._positions[column]
        msg = f"there is no column {column!r} ({role}=). The columns are {self}."
        raise bad(self.where, msg, line=self.line)

    def guess(self, known: Sequence[str], role: str) -> int | None:
        """Return the one column with a usual name, or None."""
        found = [j for j, name in enumerate(self.names) if plain(name) in known]
        if len(found) > 1:
            names = " and ".join(shown(self.names[j]) for j in found)
            raise bad(self.where, f"both {names} may be meant: pass {role}=.", line=self.line)
        return found[0] if found else None


def plain(name: str) -> str:
    """Return a column name without case, and with underscores for what stands between words."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def assign_roles(columns: Columns, options: Options) -> Roles:
    """Give every column its role."""
    guessed: dict[str, str] = {}

    def single(given: Column | bool | None, role: str, known: Sequence[str]) -> int | None:
        if given is False:
            return None
        if given is not None and not isinstance(given, bool):
            return columns.position(given, role)
        found = columns.guess([name for name in known if name not in spoken_for], role)
        if found is not None:
            guessed[role] = f"column {columns.names[found]!r}"
        return found

    chosen: list[Column] = [
        c for c in (options.bag, options.label, *(options.features or ())) if isinstance(c, str)
    ]
    spoken_for = {plain(str(name)) for name in chosen}
    bag = single(options.bag, "bag", BAG_NAMES)
    if bag is None:
        msg = (
            f"no column tells which bag a row belongs to. Name it with bag=; a column called "
            f"{', '.join(BAG_NAMES)} would be found. The columns are {columns}."
        )
        raise bad(columns.where, msg, line=columns.line)
    label_names = None
    if isinstance(options.label, str | int | None) or options.label is False:
        one = single(options.label, "label", LABEL_NAMES)
        label: tuple[int, ...] = () if one is None else (one,)
        if one is None and options.label is None:
            guessed["label"] = "none"
    else:
        label = tuple(columns.position(column, "label") for column in options.label)
        label_names = tuple(columns.names[j] for j in label)
    instance_name = single(options.instance_name, "instance_name", INSTANCE_NAMES)
    instance_label = single(options.instance_label, "instance_label", INSTANCE_LABELS)
    taken = {bag, *label, instance_name, instance_label}
    if options.features is not None:
        features = tuple(columns.position(column, "features") for column in options.features)
        if clash := sorted({bag, *label} & set(features)):
            msg = f"column {columns.names[clash[0]]!r} cannot be a feature and name bag or label."
            raise bad(columns.where, msg, line=columns.line)
    else:
        features = tuple(j for j in range(len(columns.names)) if j not in taken)
        nameless = [j for j in features if not columns.names[j]]
        if nameless:  # as pandas writes an index
            features = tuple(j for j in features if j not in nameless)
            guessed["left out"] = f"column {nameless[0] + 1}, which has no name"
    if not features:
        raise bad(columns.where, f"no feature columns are left. It has {columns}.")
    return Roles(
        tuple(columns.names), bag, label, label_names, features, instance_name, instance_label,
        guessed, bool(options.allow_nan),
    )  # fmt: skip
