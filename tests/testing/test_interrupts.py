"""Exceptions come where they are asked for, and nothing stays patched."""

import numpy as np
import pytest

from bagwise import Bags
from bagwise.base import _classifier
from bagwise.testing import make_toy_bags
from bagwise.testing._interrupts import CUTS, Trip, TrippingBags, cut_places
from testing import sound
from testing.sound import NearestMean


@pytest.fixture
def data():
    bags, y = make_toy_bags()
    return Bags.from_list(bags), y


@pytest.mark.parametrize("where", CUTS)
def test_events_are_counted_and_the_fit_is_the_same(where, data):
    trip = Trip()
    model = NearestMean()
    CUTS[where](model, *data, trip)
    assert trip.count >= 5
    expected = NearestMean().fit(*data).decision_function(data[0])
    np.testing.assert_array_equal(model.decision_function(data[0]), expected)


@pytest.mark.parametrize("where", CUTS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_the_exception_comes_at_its_place(where, error, data):
    counter = Trip()
    CUTS[where](NearestMean(), *data, counter)
    for place in range(1, counter.count + 1):
        trip = Trip(place, error)
        with pytest.raises(error, match="injected"):
            CUTS[where](NearestMean(), *data, trip)
        assert trip.count == place
    CUTS[where](NearestMean(), *data, Trip(counter.count + 1, error))


def test_nothing_stays_patched(data):
    before = dict(vars(_classifier)), dict(vars(sound)), dict(vars(NearestMean))
    for fit in CUTS.values():
        fit(NearestMean(), *data, Trip())
        with pytest.raises(KeyboardInterrupt):
            fit(NearestMean(), *data, Trip(2))
    assert (dict(vars(_classifier)), dict(vars(sound)), dict(vars(NearestMean))) == before


def test_counted_bags_are_the_bags(data):
    bags, _ = data
    counted = TrippingBags.of(bags, Trip())
    assert isinstance(counted, Bags)
    assert len(counted) == len(bags)
    np.testing.assert_array_equal(counted.instances, bags.instances)
    np.testing.assert_array_equal(counted.sizes, bags.sizes)


@pytest.mark.parametrize("n_events", [0, 1, 2, 6, 100])
def test_places_span_the_fit(n_events):
    places = cut_places(n_events)
    assert len(places) == min(n_events, 6)
    assert places == sorted(set(places))
    if places:
        assert (places[0], places[-1]) == (1, n_events)
