"""Put faults into the library, one at a time, and see whether the tests notice.

The faults are data, in ``faults/<subpackage>.toml``; `CONTRIBUTING.md` says how to add one. For
each of them the tree is copied, one piece of source text replaced in the copy, and those tests run
that ought to notice. This is a runner of our own because the general ones (mutmut, cosmic-ray) do
not know numba: they run old machine code from its cache or compile everything for each fault, and
they would try tens of thousands of faults, few of which anybody would make.
"""

import argparse
import ast
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE = Path("src/bagwise")
#: What the tests read. Caches come along, so that little is compiled anew.
COPIED = ["src", "tests", "docs", "examples", "benchmarks", "pyproject.toml", "Makefile"]
#: The last outcome of every fault, and the page that shows them.
OUTCOMES = HERE / "outcomes.toml"
PAGE = ROOT / "CONTRIBUTING.md"
MARKS = ("<!-- faults: begin -->\n", "<!-- faults: end -->\n")
SHARE_NEEDED = 0.95
#: Exit status of pytest when no test fails: all pass, or none is selected.
SILENT = (0, 5)
#: Without limits on tests by the clock: the runner has one of its own.
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
PYTEST += ["--timeout", "0", "-o", "faulthandler_timeout=0"]

Item = TypeVar("Item")


# --- the faults --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A piece of source text, what a tired engineer makes of it, and who ought to notice.

    Parameters
    ----------
    name : str
        ``<folder>/<module>:<name>``, unique.
    path : Path
        The file, seen from the root of the project.
    kind, what : str
        Sign, bound, weight, branch, ... and the fault in one line.
    old, new : str
        The text, which occurs exactly once in the file, and its replacement.
    tests : list of str
        Arguments of pytest; each string is one run of it.
    equivalent : str
        Why the fault cannot matter, or nothing. Such a fault is not run.
    """

    name: str
    path: Path
    kind: str
    what: str
    old: str
    new: str
    tests: list[str]
    equivalent: str = ""

    @property
    def subpackage(self) -> str:
        """The folder below the package; files beside the folders are the package's own."""
        return self.name.split("/")[0] if "/" in self.name else "bagwise"

    def applied(self, root: Path) -> str:
        """Return the file below a root with the fault in it; raise ValueError if there is none."""
        source = (root / self.path).read_text()
        if (count := source.count(self.old)) != 1:
            message = f"its text occurs {count} times in {self.path}; once is needed"
            raise ValueError(message)
        return source.replace(self.old, self.new)

    def problem(self) -> str:
        """Say why this fault cannot be judged any more, or nothing."""
        try:
            ast.parse(self.applied(ROOT))
        except (OSError, ValueError, SyntaxError) as error:
            return str(error)
        words = [word for run in self.tests for word in shlex.split(run)]
        paths = [word.split("::")[0] for word in words if is_path(word)]
        return ", ".join(f"{path} does not exist" for path in paths if not (ROOT / path).exists())


def is_path(word: str) -> bool:
    """Tell the tests among the arguments of pytest from its options."""
    return word.startswith(("tests/", "src/"))


def files_of(run: str) -> list[str]:
    """Return a run of pytest as one run for each of its files: those that many runs share."""
    words = shlex.split(run)
    options = [word for word in words if not is_path(word)]
    return [shlex.join([word, *options]) for word in words if is_path(word)]


def mirrored_test(path: str) -> str:
    """Return the test file of a module: kernels/_set.py is tested by tests/kernels/test_set.py."""
    module = Path(path)
    return str("tests" / module.with_name(f"test_{module.name.lstrip('_')}"))


def read_faults() -> list[Fault]:
    """Read every list of faults; a name that occurs twice is refused."""
    faults: dict[str, Fault] = {}
    for toml in sorted((HERE / "faults").glob("*.toml")):
        data = tomllib.loads(toml.read_text())
        for file in data["file"]:
            usual = file.get("tests", [mirrored_test(file["path"])])
            for entry in file["fault"]:
                name = f"{file['path'].removesuffix('.py')}:{entry.pop('name')}"
                if name in faults:
                    raise SystemExit(f"{toml.name}: {name} occurs twice.")
                tests = [*entry.pop("tests", usual), *data.get("also", [])]
                faults[name] = Fault(name, SOURCE / file["path"], tests=tests, **entry)
    return list(faults.values())


def chosen(faults: list[Fault], patterns: list[str], since: str | None) -> list[Fault]:
    """Return the faults whose name matches a pattern and whose file changed since a revision."""
    if patterns:
        faults = [fault for fault in faults if any(fnmatch(fault.name, p) for p in patterns)]
    if since is not None:
        changed = git("diff", "--name-only", since).split()
        faults = [fault for fault in faults if fault.path.as_posix() in changed]
    return faults


def git(*arguments: str) -> str:
    """Return what git says of this project."""
    return subprocess.check_output(["git", *arguments], cwd=ROOT, text=True)


# --- copies and their caches -------------------------------------------------------------------


def copy_tree(origin: Path, copy: Path) -> None:
    """Copy what the tests need with its times, by which caches of compiled code are judged."""
    copy.mkdir()
    for path in [*(origin / name for name in COPIED), *origin.glob("*.md")]:
        if path.is_dir():
            shutil.copytree(path, copy / path.name, ignore=shutil.ignore_patterns("_build"))
        else:
            shutil.copy2(path, copy)


def imported_by(path: Path) -> Iterator[str]:
    """Yield the names of all modules that a file may import; imports are absolute here."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def forget_compiled(root: Path, changed: Path) -> None:
    """Remove the compiled code of a file and of all compiled modules that build on it.

    numba looks at the time of the one file only, and would run the old code of a callee.
    """
    compiled = {
        path: set(imported_by(path))
        for path in (root / SOURCE).rglob("*.py")
        if "import compiled" in path.read_text() or path.stem.endswith("_kernels")
    }
    stale: set[Path] = set()
    found = {root / changed}
    while found:
        stale |= found
        names = {".".join(path.relative_to(root / "src").with_suffix("").parts) for path in found}
        found = {path for path, imports in compiled.items() if imports & names} - stale
    for path in stale:
        for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            cached.unlink()


# --- runs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: noticed, hung (which is noticed), survived, or not judged."""

    word: str
    seconds: float
    remark: str = ""

    @property
    def noticed(self) -> bool:
        """Whether a test failed or did not come to an end."""
        return self.word in ("noticed", "hung")


class Runner:
    """Judges faults in copies of the tree below a folder.

    Parameters
    ----------
    folder : Path
        An empty folder for the copies: one that stays clean, and one for each fault in work.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clean = folder / "clean"
        self.running: set[subprocess.Popen[str]] = set()
        copy_tree(ROOT, self.clean)

    def pytest(self, root: Path, arguments: str, limit: float) -> tuple[int | None, float, str]:
        """Run tests in a copy; return the exit status (None: no end), seconds and last lines.

        The limit is one of processor time, so that other work beside it does not matter; a run that
        only waits is ended after ten times as long.
        """
        began = time.monotonic()
        process = subprocess.Popen(
            [*PYTEST, *shlex.split(arguments)],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        self.running.add(process)
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (int(limit), int(limit)))
        try:
            output, status = process.communicate(timeout=10 * limit)[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, status = process.communicate()[0], None
        self.running.discard(process)
        if status in (-signal.SIGXCPU, -signal.SIGKILL):
            status = None
        return status, time.monotonic() - began, output[-1500:]

    def without_fault(self, arguments: str) -> Outcome:
        """Run tests on the clean copy, which fills its caches as well."""
        status, seconds, output = self.pytest(self.clean, arguments, 1800)
        return Outcome("passed" if status in SILENT else "failed", seconds, output)

    def judge(self, fault: Fault, before: dict[str, Outcome]) -> Outcome:
        """Put one fault into a copy of its own and run its tests until one run notices."""
        for file in (file for run in fault.tests for file in files_of(run)):
            if before[file].word == "failed":
                return Outcome("not judged", 0.0, f"fails without the fault: pytest {file}")
        total = 0.0
        with tempfile.TemporaryDirectory(dir=self.folder) as holder:
            root = Path(holder) / "tree"
            copy_tree(self.clean, root)
            (root / fault.path).write_text(fault.applied(root))
            forget_compiled(root, fault.path)
            for run in fault.tests:
                limit = 60 + 5 * sum(before[file].seconds for file in files_of(run))
                status, seconds, _ = self.pytest(root, run, limit)
                total += seconds
                if status not in SILENT:
                    return Outcome("hung" if status is None else "noticed", total)
        return Outcome("survived", total)

    def stop(self) -> None:
        """End the runs of pytest that are under way."""
        for process in list(self.running):
            os.killpg(process.pid, signal.SIGKILL)


def judge_all(faults: list[Fault], jobs: int, outcomes: dict[str, Outcome]) -> None:
    """Judge faults, several at a time; say what became of each, and keep it, once it is known."""
    files = sorted({file for fault in faults for run in fault.tests for file in files_of(run)})
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        runner = Runner(Path(folder))
        pool = ThreadPoolExecutor(jobs)
        try:
            before = {}
            for file, outcome in each(pool, runner.without_fault, files):
                before[file] = outcome
                said = f"without a fault {outcome.word:6} {outcome.seconds:5.0f} s  {file}"
                print(said, flush=True)
                if outcome.word == "failed":
                    print(outcome.remark)
            for fault, outcome in each(pool, lambda fault: runner.judge(fault, before), faults):
                outcomes[fault.name] = outcome
                said = f"{len(outcomes):3}/{len(faults)} {outcome.word:10} {outcome.seconds:5.0f} s"
                print(f"{said}  {fault.name}", flush=True)
                if not outcome.noticed:
                    print(f"         {fault.kind}: {fault.what}  {outcome.remark}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            runner.stop()


def each(
    pool: ThreadPoolExecutor, work: Callable[[Item], Outcome], items: list[Item]
) -> Iterator[tuple[Item, Outcome]]:
    """Yield items with their outcomes, in the order in which they are done."""
    futures = {pool.submit(work, item): item for item in items}
    for future in as_completed(futures):
        yield futures[future], future.result()


# --- the last result ---------------------------------------------------------------------------


def read_outcomes() -> dict[str, Outcome]:
    """Read the last outcome of every fault."""
    if not OUTCOMES.exists():
        return {}
    return {name: Outcome(*entry) for name, entry in tomllib.loads(OUTCOMES.read_text()).items()}


def write_outcomes(outcomes: dict[str, Outcome]) -> None:
    """Write outcomes, one in a line."""
    lines = [f'"{name}" = ["{o.word}", {o.seconds:.0f}]\n' for name, o in sorted(outcomes.items())]
    OUTCOMES.write_text("".join(lines))


def table(faults: list[Fault], outcomes: dict[str, Outcome]) -> str:
    """Return the last result in Markdown: counts by subpackage, then the survivors by name."""
    lines = ["| subpackage | faults | noticed | seconds |", "|---|---|---|---|"]
    for name in [*sorted({fault.subpackage for fault in faults}), "all"]:
        rows = [outcomes[f.name] for f in faults if name in ("all", f.subpackage)]
        noticed = sum(outcome.noticed for outcome in rows)
        seconds = sum(outcome.seconds for outcome in rows)
        lines.append(f"| {name} | {len(rows)} | {noticed} | {seconds:.0f} |")
    survivors = [fault for fault in faults if not outcomes[fault.name].noticed]
    lines += ["", "Not noticed:" if survivors else "Every fault is noticed.", ""]
    lines += [f"- `{fault.name}`: {fault.what}" for fault in survivors]
    return "\n".join(lines).strip() + "\n"


def record(faults: list[Fault], new: dict[str, Outcome]) -> None:
    """Add outcomes to the last ones, and write the page."""
    known = read_outcomes() | new
    judged = [fault for fault in faults if fault.name in known and not fault.equivalent]
    outcomes = {fault.name: known[fault.name] for fault in judged}
    write_outcomes(outcomes)
    equivalent = sum(bool(fault.equivalent) for fault in faults)
    missing = len(faults) - equivalent - len(judged)
    said = f"Last result, {date.today()}: {len(judged)} faults, {equivalent} more are equivalent"
    said += f", {missing} have not been run yet.\n\n" if missing else ".\n\n"
    before, rest = PAGE.read_text().split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(before + MARKS[0] + said + table(judged, outcomes) + MARKS[1] + after)


# --- the command -------------------------------------------------------------------------------


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--list", action="store_true", help="only show the faults, and which are stale")
    add("--only", action="append", default=[], metavar="PATTERN", help="'bags/*'; again for more")
    said = "only faults in files changed since a revision (HEAD)"
    add("--changed", nargs="?", const="HEAD", metavar="REVISION", help=said)
    add("--jobs", type=int, default=1, help="faults at the same time (1)")
    add("--record", action="store_true", help="write the outcomes and the table of the page")
    return parser.parse_args()


def main() -> int:
    """List or judge the chosen faults; return 1 if too few are noticed or one is stale."""
    arguments = parse_arguments()
    # A job in the background ignores Ctrl-C, and so would the tests that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    everything = read_faults()
    faults = chosen(everything, arguments.only, arguments.changed)
    problems = {fault.name: problem for fault in faults if (problem := fault.problem())}
    for name, problem in problems.items():
        print(f"STALE {name}: {problem}")
    if arguments.list:
        for fault in faults:
            print(f"{fault.name}\n    {fault.kind}: {fault.what}")
        print(f"{len(faults)} faults, {len(problems)} stale")
        return bool(problems)
    able = [fault for fault in faults if not fault.equivalent and fault.name not in problems]
    outcomes: dict[str, Outcome] = {}
    try:
        judge_all(able, arguments.jobs, outcomes)
    finally:  # Ctrl-C too keeps what is known
        done = [fault for fault in able if fault.name in outcomes]
        print("\n" + table(done, outcomes))
        if arguments.record:
            record(everything, outcomes)
    noticed = sum(outcome.noticed for outcome in outcomes.values())
    return bool(problems) or noticed < SHARE_NEEDED * len(able)


if __name__ == "__main__":
    sys.exit(main())
