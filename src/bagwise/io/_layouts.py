"""Where the files of a folder of bags are: plain, or as TRIDENT, CLAM and torchmil lay them out.

========  ======================================================================================
plain     one file a bag, and a label table beside them (``labels.csv``)
trident   ``20x_256px_0px_overlap/features_NAME/SLIDE.h5`` with ``features`` and ``coords``
clam      ``h5_files/SLIDE.h5`` and ``pt_files/SLIDE.pt``
torchmil  ``features/BAG.npy``, ``labels/BAG.npy``, ``inst_labels/BAG.npy``
========  ======================================================================================
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bagwise.io._bag_file import SUFFIXES
from bagwise.io._options import Options
from bagwise.io._problems import bad

TABLE_SUFFIXES = (".csv", ".tsv")


@dataclass(frozen=True)
class Layout:
    """The folders and files that hold bags and what is known about them."""

    name: str
    bags: Path
    suffix: str
    labels: Path | None = None
    instance_labels: Path | None = None
    table: Path | None = None
    guessed: dict[str, str] = field(default_factory=dict)


def find_layout(folder: Path, options: Options) -> Layout:
    """Recognise the layout of a folder, or take the one that is asked for."""
    preset = options.preset or _recognise(folder)
    guessed = {} if options.preset or preset is None else {"preset": preset}
    labels = instance_labels = None
    if preset == "torchmil":
        bags = _needed(folder, "features", preset)
        labels = _if_there(folder / "labels")
        instance_labels = _if_there(folder / "inst_labels")
    elif preset == "clam":
        usable = [_if_there(folder / name) for name in ("h5_files", "pt_files")]
        bags = next((p for p in usable if p is not None and _kinds(p)), folder)
    elif preset == "trident":
        bags = _find_trident(folder)
    else:
        bags = folder
    kinds = _kinds(bags)
    if not kinds:
        msg = f"there is no file of a bag in it. A bag is a file {', '.join(SUFFIXES)}."
        raise bad(bags, msg)
    if len(kinds) > 1:
        counts = ", ".join(f"{count} {suffix}" for suffix, count in kinds.items())
        raise bad(bags, f"the files of bags must be of one kind. It has {counts}.")
    suffix = next(iter(kinds))
    guessed["bags"] = f"{kinds[suffix]} files {suffix} in {bags.name}"
    table = _find_table(folder, bags, options, guessed, needed=labels is None)
    if options.label_table:  # it was asked for, so it wins over a folder of labels
        labels = None
    return Layout(preset or "plain", bags, suffix, labels, instance_labels, table, guessed)


def _recognise(folder: Path) -> str | None:
    if (folder / "features").is_dir():
        return "torchmil"
    if (folder / "h5_files").is_dir() or (folder / "pt_files").is_dir():
        return "clam"
    if folder.name.startswith("features_") or _trident_folders(folder):
        return "trident"
    return None


def _trident_folders(folder: Path) -> list[Path]:
    patterns = ("*_overlap/features_*", "features_*")
    return sorted(p for pattern in patterns for p in folder.glob(pattern) if p.is_dir())


def _find_trident(folder: Path) -> Path:
    if _kinds(folder):
        return folder
    found = _trident_folders(folder)
    if len(found) == 1:
        return found[0]
    if not found:
        raise bad(folder, "there is no folder *_overlap/features_* in it, as TRIDENT makes them.")
    names = ", ".join(str(p.relative_to(folder)) for p in found)
    raise bad(folder, f"several features were computed ({names}): read one of these folders.")


def _needed(folder: Path, name: str, preset: str) -> Path:
    if not (folder / name).is_dir():
        raise bad(folder, f"the layout of {preset} has a folder {name!r}, and this has none.")
    return folder / name


def _if_there(folder: Path) -> Path | None:
    return folder if folder.is_dir() else None


def _kinds(folder: Path) -> Counter[str]:
    """Count the files of bags by suffix."""
    return Counter(p.suffix.lower() for p in folder.iterdir() if is_bag_file(p))


def is_bag_file(path: Path) -> bool:
    """Tell whether a file may hold a bag, by its name."""
    hidden = path.name.startswith(".")
    return path.suffix.lower() in SUFFIXES and not hidden and path.is_file()


def _find_table(
    folder: Path, bags: Path, options: Options, guessed: dict[str, str], *, needed: bool
) -> Path | None:
    if options.label_table is False:
        return None
    if options.label_table is not None:
        given = Path(options.label_table)
        for path in (given, folder / given):
            if path.is_file():
                return path
        msg = f"{given} does not exist (label_table=)."
        raise FileNotFoundError(msg)
    places = dict.fromkeys((folder, bags))
    tables = [p for f in places for p in sorted(f.iterdir()) if p.suffix.lower() in TABLE_SUFFIXES]
    named = [p for p in tables if p.stem.lower() == "labels"]
    if len(named) == 1 or len(tables) == 1:
        table = named[0] if named else tables[0]
        guessed["label_table"] = table.name
        return table
    if tables and needed:
        names = ", ".join(p.name for p in tables)
        raise bad(folder, f"several tables may hold the labels ({names}): pass label_table=.")
    if needed:
        guessed["label_table"] = "none"
    return None
