"""What long work says about itself, and how it is shown."""

import io
import re
from inspect import signature

import numpy as np
import pytest

from bagwise import Bags, all_estimators
from bagwise._progress import (
    LEVELS,
    ProgressLine,
    Report,
    Trail,
    counted,
    listening,
    report,
    shown,
)
from bagwise.persistence._models import encode
from bagwise.testing import make_toy_bags

ESTIMATORS = dict(all_estimators())
TALKATIVE = {name: cls for name, cls in ESTIMATORS.items() if "verbose" in cls().get_params()}
#: Who has no verbose, and why.
NOTHING_TO_SAY = {
    "CitationKNN": "a fit keeps the bags",
    "CitationKNNROI": "a fit keeps the bags",
}
#: Whose lines have no objective, and why.
WITHOUT_OBJECTIVE = {
    "MLCA": "the metric is a closed form; what takes long is to read the instances",
    "RandomSetSVM": "the vectors are drawn, and the rest is one problem in few variables",
}


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nobody_listens_by_default(capsys):
    report("pass", 1, objective=1.0)
    assert capsys.readouterr() == ("", "")


def test_the_innermost_listener_hears():
    outer, inner = [], []
    with listening(outer.append):
        report("start", 1)
        with listening(inner.append):
            report("pass", 2, total=3, objective=4.0, gap=0.5, goal=0.1)
        report("start", 2)
    report("start", 3)
    assert [step.number for step in outer] == [1, 2]
    assert inner == [Report("pass", 2, 3, 4.0, 0.5, 0.1)]


def test_listeners_leave_with_errors():
    heard = []
    with pytest.raises(KeyError), listening(heard.append):
        raise KeyError
    report("pass", 1)
    assert not heard


def test_a_trail_says_where_the_work_is():
    trail = Trail()
    trail.add(Report("start", 1, 2))
    trail.add(Report("round", 3, objective=12.5))
    trail.add(Report("pass", 7, objective=12.25, gap=0.015))
    trail.add(Report("step", 90, objective=1.0, gap=0.5))  # of a part
    assert str(trail) == "start 1 of 2, round 3, pass 7, step 90, objective 12.5, gap 1.5e-02"
    trail.add(Report("start", 2, 2))
    assert str(trail) == "start 2 of 2"


def test_the_share_goes_from_the_first_gap_to_the_goal():
    trail = Trail()
    assert np.isnan(trail.share)
    for gap, expected in [(1.0, 0.0), (0.1, 0.5), (0.01, 1.0), (0.001, 1.0), (2.0, 0.0)]:
        trail.add(Report("pass", 1, gap=gap, goal=0.01))
        assert trail.share == pytest.approx(expected)
    trail.add(Report("round", 2))
    assert np.isnan(trail.share)


def test_the_next_problem_begins_with_its_own_gap():
    trail = Trail()
    for number, gap in [(1, 1.0), (5, 0.01), (1, 0.1)]:
        trail.add(Report("pass", number, gap=gap, goal=0.01))
    assert trail.share == 0.0


def test_a_terminal_has_one_line_that_changes():
    stream, clock = Terminal(), Clock()
    line = ProgressLine("SIL", stream=stream, clock=clock)
    for number in range(1, 101):
        clock.now = number / 64
        line(Report("pass", number, objective=1.0, gap=0.1, goal=0.01))
    line.close()
    written = stream.getvalue()
    assert written.count("\r") == 100 // 7 + 1  # after a tenth of a second each, and the last
    assert written.endswith("pass 100, objective 1, gap 1.0e-01, 1.6 s\n")
    assert "[....................] SIL: " in written
    assert written.count("\n") == 1


def test_the_last_line_has_no_bar_that_stands_still():
    stream, clock = Terminal(), Clock()
    line = ProgressLine("SIL", stream=stream, clock=clock)
    for number, gap in [(1, 1.0), (2, 0.1)]:
        clock.now += 1.0
        line(Report("pass", number, objective=1.0, gap=gap, goal=0.01))
    line.close()
    *_, before, last = stream.getvalue().split("\r")
    assert before.startswith("[##########..........] SIL: pass 2, ")
    assert last == "[------ ended -------] SIL: pass 2, objective 1, gap 1.0e-01, 2.0 s\n"


@pytest.mark.parametrize(("error", "word"), [(None, "ended"), (KeyboardInterrupt, "broken off")])
def test_the_last_line_says_how_it_ended(capsys, error, word):
    def work():
        with shown("SIL", 1):
            for number, gap in [(1, 1.0), (2, 0.1)]:
                report("pass", number, gap=gap, goal=0.01)
            if error is not None:
                raise error

    if error is None:
        work()
    else:
        with pytest.raises(error):
            work()
    assert re.match(rf"\[-+ {word} -+\] SIL: pass 2, ", capsys.readouterr().err)


def test_a_shorter_line_covers_a_longer_one():
    stream, clock = Terminal(), Clock()
    line = ProgressLine("SIL", stream=stream, clock=clock)
    for number in (10_000, 1):
        clock.now += 1
        line(Report("step", number))
    _, first, second = stream.getvalue().split("\r")
    assert len(first) == len(second)


@pytest.mark.parametrize(("verbose", "n_lines"), [(1, 3), (2, 100)])
def test_files_get_lines(verbose, n_lines):
    stream, clock = io.StringIO(), Clock()
    line = ProgressLine("SIL", verbose, stream=stream, clock=clock)
    for number in range(100):
        clock.now += 0.125
        line(Report("pass", number))
    line.close()
    assert stream.getvalue().count("\n") == n_lines
    assert "\r" not in stream.getvalue()


def test_what_reports_nothing_writes_nothing(capsys):
    with shown("SIL", 1):
        pass
    with shown("SIL", 0):
        report("pass", 1)
    assert capsys.readouterr() == ("", "")


def test_who_talks():
    """Whoever optimises says how far it is: the others stand in the table, with the reason."""
    assert set(TALKATIVE) == set(ESTIMATORS) - set(NOTHING_TO_SAY)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_is_said_by_default_is_nothing(name):
    parameters = list(signature(ESTIMATORS[name]).parameters.values())
    assert (parameters[-1].name == "verbose") == (name in TALKATIVE)
    assert name not in TALKATIVE or parameters[-1].default == 0


@pytest.mark.parametrize("name", TALKATIVE)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_talk_if_asked_and_learn_the_same(name, capsys):
    bags, y = make_toy_bags(24, kind="close", random_state=3)
    cls = TALKATIVE[name]
    given = {"random_state": 0} if "random_state" in cls().get_params() else {}
    silent = cls(**given).fit(bags, y)
    assert capsys.readouterr() == ("", "")
    loud = cls(**given, verbose=2).fit(bags, y)
    out, err = capsys.readouterr()
    assert not out
    number = "" if name in WITHOUT_OBJECTIVE else r".*objective -?[\d.]+"
    line = rf"^(\[[#.]+\] )?{name}: .*({'|'.join(LEVELS)}) \d+{number}"
    assert re.search(line, err, re.M)
    assert fitted_bits(loud) == fitted_bits(silent)


def fitted_bits(model):
    """Return all that a fit has learned, as it is saved, but for the time that it took."""
    header, arrays = encode(model)
    return without_times(header["model"]["state"]), {
        name: array.tobytes() for name, array in arrays.items() if "solve_time" not in name
    }


def without_times(node):
    """Return numbers that JSON can hold, without seconds."""
    if isinstance(node, dict):
        return {key: without_times(value) for key, value in node.items() if key != "solve_time"}
    return [without_times(value) for value in node] if isinstance(node, list) else node


def test_blocks_of_a_kernel_between_bags_are_counted(capsys, monkeypatch):
    monkeypatch.setattr("bagwise.kernels._instance.BLOCK", 32)
    bags, y = make_toy_bags(24, kind="close", random_state=3)
    TALKATIVE["MIKernelSVM"](verbose=2).fit(bags, y)
    found = re.findall(r"MIKernelSVM: block (\d+) of (\d+), ", capsys.readouterr().err)
    numbers, totals = zip(*((int(number), int(total)) for number, total in found), strict=True)
    assert len(set(totals)) == 1
    assert totals[0] > 1
    assert list(numbers) == list(range(1, totals[0] + 1))


def test_one_block_is_not_worth_a_word():
    heard = []
    with listening(heard.append):
        assert list(counted("a", 1)) == ["a"]
        assert list(counted("ab", 2, "start")) == ["a", "b"]
    assert heard == [Report("start", 1, 2), Report("start", 2, 2)]


def test_passes_tell_their_gap(capsys, monkeypatch):
    monkeypatch.setattr("bagwise.svm.machinery._kernel_machine.MANY_VALUES", 10)
    bags, y = make_toy_bags(24, kind="close", random_state=3)
    model = TALKATIVE["SIL"](C=1.0, kernel="linear", verbose=2).fit(Bags.from_list(bags), y)
    lines = capsys.readouterr().err.splitlines()
    found = [re.search(r"pass (\d+),.* objective (\S+), gap (\S+), ", line) for line in lines]
    numbers = [int(match[1]) for match in found]
    assert numbers == sorted(numbers)
    assert float(found[-1][2]) == pytest.approx(model.result_.objective, rel=1e-5)
    assert float(found[-1][3]) == pytest.approx(model.result_.relative_gap, rel=0.05, abs=1e-9)


@pytest.mark.parametrize("params", [{"solver": "relaxed"}, {"solver": "mirror_prox", "tol": 0.1}])
def test_rounds_of_a_relaxation_tell_its_objective_and_gap(params, capsys):
    bags, y = make_toy_bags(24, kind="close", random_state=3)
    model = TALKATIVE["MIODM"](verbose=2, random_state=0, **params).fit(bags, y)
    last = capsys.readouterr().err.splitlines()[-1]
    found = re.search(r"round (\d+), objective (\S+), gap (\S+), ", last)
    assert int(found[1]) == model.n_iter_
    assert float(found[2]) == pytest.approx(model.result_.objective, rel=1e-5)
    assert float(found[3]) == pytest.approx(model.result_.residual, rel=0.05)


def test_starts_of_margin_bands_are_counted(capsys):
    bags, y = make_toy_bags(24, kind="close", random_state=3)
    model = TALKATIVE["MIODM"](verbose=2, random_state=0).fit(bags, y)
    n = len(model.result_.ends)
    lines = capsys.readouterr().err
    assert [f"start {k + 1} of {n}" in lines for k in range(n)] == [True] * n
    assert "gap" in lines


def test_bad_verbose_is_refused():
    with pytest.raises(ValueError, match="'verbose' parameter of SIL"):
        TALKATIVE["SIL"](verbose="loud").fit([[[0.0]], [[1.0]]], [0, 1])


def test_the_command_line_shows_reports_on_a_terminal():
    from rich.console import Console

    from bagwise.cli._output import Output

    screen = io.StringIO()
    output = Output()
    vars(output)["progress"] = Console(file=screen, force_terminal=True, width=110)
    with output.busy("Fitting SIL"):
        report("pass", 7, objective=2.5, gap=0.01)
    assert "Fitting SIL: pass 7, objective 2.5, gap 1.0e-02 ..." in screen.getvalue()
