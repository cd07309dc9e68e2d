"""Addresses: what is written is read back, what is wrong is named."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard import address
from dashboard.address import OPERATORS, Address, AddressError, Filter, Range

numbers = st.none() | st.integers(min_value=0, max_value=10**18 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ranges = st.builds(
    lambda begin, length: Range(begin, begin + length),
    st.integers(0, 10**12),
    st.integers(1, 10**12),
)
columns = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
filters = st.builds(
    Filter, columns, st.sampled_from(OPERATORS), values.filter(lambda v: v[0] != "=")
)

chosen = st.lists(st.integers(0, 10**6), max_size=5, unique=True).map(tuple)
options = st.dictionaries(
    st.sampled_from(["tab", "order", "breakdown"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
).map(lambda pairs: tuple(sorted(pairs.items())))


@settings(max_examples=80, deadline=None)
@given(
    st.builds(
        Address,
        path=st.sampled_from(["/", "/memory", "/liveness"]),
        report=texts,
        against=texts,
        tiles=chosen,
        ipu=numbers,
        steps=chosen,
        event=numbers,
        range=st.none() | ranges,
        filter=st.none() | filters,
        show=texts,
        options=options,
    )
)
def test_written_address_is_read_back(chosen: Address) -> None:
    link = urlsplit(address.write(chosen))
    assert address.parse(link.path, link.query) == chosen


def test_address_is_short_and_readable() -> None:
    chosen = Address("/liveness", "training", steps=(18,), filter=Filter("name", "~", "conv"))
    assert address.write(chosen) == "/liveness?report=training&step=18&filter=name~conv"


def test_nothing_chosen_is_the_bare_path() -> None:
    assert address.write(Address("/memory")) == "/memory"
    assert address.parse("/memory", None) == Address("/memory")


def test_keys_of_a_page_are_its_options() -> None:
    chosen = address.parse("/", "?order=physical&tile=4&NO%20KEY=1")
    assert chosen == Address("/", tiles=(4,), options=(("order", "physical"),))
    assert chosen.option("order", ("software", "physical")) == "physical"
    assert chosen.option("tab", ("details", "variables")) == "details"


def test_option_that_is_not_known_is_named() -> None:
    with pytest.raises(AddressError, match="tab=x: not there; known: details, variables"):
        address.parse("/", "tab=x").option("tab", ("details", "variables"))


def test_tiles_are_numbers_and_ranges() -> None:
    chosen = address.parse("/memory", "tile=3, 17,100-102,17")
    assert chosen.tiles == (3, 17, 100, 101, 102)
    assert address.write(chosen) == "/memory?tile=3,17,100-102"


@pytest.mark.parametrize("text", ["3 17 100-102", "3,17 100 - 102", "3%2017,,100- 102,"])
def test_spaces_part_tiles_as_commas_do(text: str) -> None:
    assert address.parse("/memory", f"tile={text}").tiles == (3, 17, 100, 101, 102)


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("tile=-1", "tile=-1: no tile; write a whole number"),
        ("tile=3,x", "tile=x: no tile"),
        ("tile=9-3", "tile=9-3: empty; write the smaller number first"),
        ("tile=0-99999999", "tile=0-99999999: too many; choose at most 20,000"),
        ("step=1e3", "step=1e3: no step"),
        ("step=99999999999999999999", "no step"),
        ("range=5", "range=5: no range; write begin and end"),
        ("range=9-9", "range=9-9: empty; the end must be after the begin"),
        ("filter=conv", "filter=conv: no filter; write a column"),
        ("filter=~conv", "filter=~conv: no filter"),
    ],
)
def test_wrong_value_is_named_with_what_would_be_right(search: str, words: str) -> None:
    with pytest.raises(AddressError, match=words.replace("?", r"\?")):
        address.parse("/", search)


def test_filter_takes_the_longest_operator_at_the_first_place() -> None:
    assert address.parse_filter("bytes>=10") == Filter("bytes", ">=", "10")
    assert address.parse_filter("name!~a=b") == Filter("name", "!~", "a=b")
