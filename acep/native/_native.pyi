# The compiled core (acep/native/src); acep.native.compiled says whether it is there.

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

version: str
sources: str  # a digest of what it was built from (acep.checkout)
sanitizers: str  # what it was built with, as -fsanitize= takes them; "" usually

# Words are int64, the validity of rows uint8 (0: null; None: never null). An input of a program is its words and their
# validity, of one value for all rows or of one for each row; doubles are passed as their bits (`.view(np.int64)`).
Words: TypeAlias = NDArray[np.int64]
Validity: TypeAlias = NDArray[np.uint8]
Input: TypeAlias = tuple[Words, Validity | None]

class Texts:
    def intern(self, text: str) -> int: ...
    def intern_all(self, texts: Sequence[str]) -> Words: ...
    def texts_of(self, codes: Words) -> list[str]: ...  # empty ones for codes not in use
    def release(self, codes: Words) -> None: ...
    def text(self, code: int) -> str: ...
    def known(self, code: int) -> bool: ...
    def order(self, a: int, b: int) -> int: ...
    def __len__(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    def keep(self, used: Validity) -> None: ...  # by code
    @property
    def bytes(self) -> int: ...

class BlockProgram:
    def __init__(self, code: Words, slots: int, leaves: int) -> None: ...
    def test(self, rows: int, leaves: Sequence[Input], texts: Texts, block: int = 256) -> Validity: ...
    def value(self, rows: int, leaves: Sequence[Input], texts: Texts, block: int = 256) -> tuple[Words, Validity]: ...
    @property
    def condition(self) -> bool: ...
    @property
    def short_way(self) -> bool: ...

def operations() -> list[tuple[str, int]]: ...  # by number: name, how many slots it reads
def divide(high: int, low: int, denominator: int) -> float: ...  # (high * 2**64 + low) / denominator

# The permutation that puts matches in order by (end, ids, ranks of vars), equal ones as they come; None: they are so.
# Match i has the events offsets[i] to offsets[i + 1]; ranks: of each variable, by name.
def output_order(
    end: Words,
    offsets: Words,
    ids: Words,
    vars: NDArray[np.uint16],  # noqa: A002
    ranks: NDArray[np.uint16],
) -> Words | None: ...

# A hash of each match: of its end, of its value in each of the columns, and of its events in their order.
def contents(
    end: Words,
    offsets: Words,
    ids: Words,
    vars: NDArray[np.uint16],  # noqa: A002
    columns: Sequence[Words],
) -> Words: ...

# The preferred matches of a row pattern in sorted rows, as MATCH_RECOGNIZE has them. States are (operation, a, b): 0 a
# row of label b, then a; 1 a is preferred to b; 2 a; 3 a before the first row of a partition; 4 a after its last row; 5
# accept. References are (kind, set, offset, shift, column, type), of kind 0 the current row; 1 FIRST, 2 LAST; 3 the
# number of rows, 4 of those that are not null; 5 sum, 6 least, 7 greatest; 8 the number of the match; 9 and 10 as 1 and
# 2, of a column with a value for each label; 11 the average of integers, of `offset` decimal places. `live`: by state,
# the references that conditions read from there on.
# `skip`: 0 past the last row, 1 to the next row, 2 to the first and 3 to the last row of a set.
class OrderedSearch:
    def __init__(
        self,
        states: Sequence[tuple[int, int, int]],
        labels: int,
        label_sets: Sequence[Sequence[int]],
        references: Sequence[tuple[int, int, int, int, int, int]],
        conditions: Sequence[tuple[int, BlockProgram, Sequence[int]]],  # of a label, with references as inputs
        live: Sequence[Sequence[int]],
        skip: int,
        skip_set: int,
        memory: int,  # bytes for what failed and for what can be reached
    ) -> None: ...
    def start(
        self,
        columns: Sequence[Input],
        local: Sequence[Validity | None],  # by label: whether its conditions on single rows hold; None: in all rows
        partitions: Words,  # offsets of rows
        texts: Texts,
        times: Words | None,
        width: int,  # the longest time from the first row of a match to its last, from 0 to 2**64 - 1
        starts: Sequence[tuple[int, int, int]] = ...,  # by partition: first start, the one no match has, matches before
        open_label: int | None = ...,  # a match whose last row has it ends the partition, and is not given
    ) -> None: ...
    # Of the partitions that are done: the position at which the search ended, and the matches before it.
    def ends(self) -> tuple[Words, Words]: ...
    # Of the partitions that are done: labels of the open match, for a pattern with conditions, as offsets and labels.
    def open_labels(self) -> tuple[Words, NDArray[np.uint16]]: ...
    # The next matches of about so many rows, None after the last: partition, number in the partition from 1, first row,
    # offsets into the labels, labels of the rows. ValueError("unbound" or "first row", partition, first row): there is
    # no row to skip to. After an error, `start` must come first.
    def take(self, rows: int) -> tuple[Words, Words, Words, Words, NDArray[np.uint16]] | None: ...
    def counts(self) -> dict[str, int]: ...  # steps (rows tried), conditions (evaluated), failures (remembered), bytes

# The open matches of a pattern whose conditions read what was bound; the last label is that of open rows.
class BoundWalks:
    def __init__(self, search: OrderedSearch) -> None: ...  # its pattern
    def __len__(self) -> int: ...
    def clear(self) -> None: ...
    # Take in the open matches of partitions with `codes`, each from row `firsts` of its partition on (negative: none),
    # with the labels of its rows, the open row too; return 1 for those that can be walked on. Others are dropped.
    def begin(
        self,
        columns: Sequence[Input],
        partitions: Words,
        texts: Texts,
        codes: Words,
        firsts: Words,
        behind: int,
        numbers: Words,
        label_offsets: Words,
        labels: NDArray[np.uint16],
    ) -> NDArray[np.uint8]: ...
    # Walk on over rows of partitions, from the positions `fresh` on; return 1 for those that are still open.
    def walk(
        self,
        columns: Sequence[Input],
        local: Sequence[Validity],
        partitions: Words,
        texts: Texts,
        codes: Words,
        fresh: Words,
        memory: int,
    ) -> NDArray[np.uint8]: ...

# Of each partition the state at which its open match waits for rows, where the match stood before a position at a
# state; -1: it does not wait. The last label is that of open rows.
def walk_open(
    states: Sequence[tuple[int, int, int]],
    local: Sequence[Validity],
    partitions: Words,
    places: Sequence[tuple[int, int]],
    memory: int,
) -> Words: ...

# The matches that OUTPUT chooses of a pattern whose conditions are functions of the row, and of the first row of the
# match, in rows by partition. `order`: 0 for the match that ends first, 1 and 2 for the longest and the shortest one
# from the first start; then the next one begins past the last row, at the next row, or at the first or last row of
# `skip_label` (`skip_to`: 0 to 3). `arcs`: source, target, label, and a byte a row, whether its conditions hold there
# (None: in all). `ends`: the states in which a match may end with a row, and `skips`: source and target where a row is
# left out, with such bytes. Each of them has tests of `tied` conditions, which read the first row, too: a byte a row,
# the numbers of conditions, and whether the row must fail; a condition is a program and its inputs, as words, validity
# and whether they are those of the first row. State 0 is that before the first row; there are at most 64. `times`
# decide between matches; `places` are those of the window of a `width`, if there is one; both rise in a partition.
# `more`: rows may come after the last ones. Returned are the rows of the matches with their labels, match after match,
# from offsets on; with `more` for each partition the first row with which a match may begin that later rows extend; and
# how many rows were met.
def search_intervals(
    arcs: Sequence[tuple[int, int, int, Validity | None, Sequence[tuple[Validity | None, Sequence[int], bool]]]],
    ends: Sequence[tuple[int, Validity | None, Sequence[tuple[Validity | None, Sequence[int], bool]]]],
    skips: Sequence[tuple[int, int, Validity | None, Sequence[tuple[Validity | None, Sequence[int], bool]]]],
    tied: Sequence[tuple[BlockProgram, Sequence[tuple[Words, Validity | None, bool]]]],
    texts: Texts | None,
    partitions: Words,  # offsets of rows
    times: Words,
    places: Words | None,
    width: int,
    order: int,
    skip_to: int,
    skip_label: int,
    more: bool,
) -> tuple[Words, Words, NDArray[np.uint16], Words, int]: ...
def follow_intervals(
    arcs: Sequence[tuple[int, int, int, Validity | None, Sequence[tuple[Validity | None, Sequence[int], bool]]]],
    ends: Sequence[tuple[int, Validity | None, Sequence[tuple[Validity | None, Sequence[int], bool]]]],
    skips: Sequence[tuple[int, int, Validity | None, Sequence[tuple[Validity | None, Sequence[int], bool]]]],
    partitions: Words,  # offsets of rows
    numbers: Words,
    places: Words | None,
    width: int,
    starts: Words,  # by partition and state: the first row and its place, the last row and its place
) -> tuple[Words, Validity, int]: ...

# What acep.arrivals.ordered_rows.OrderedRows does.
class OrderedRows:
    def __init__(self, words: int, tied: bool) -> None: ...
    def __len__(self) -> int: ...
    def add_flags(self) -> None: ...
    def insert(self, words: Sequence[Words], flags: Sequence[Validity | None]) -> None: ...
    def lower(self, ts: int) -> int: ...
    def chosen(self, begin: int, end: int, buckets: Validity | None) -> tuple[int, list[Words], list[Validity]]: ...
    def at(self, places: Words) -> tuple[list[Words], list[Validity]]: ...
    def column(self, which: int) -> Words: ...
    def flags(self, which: int) -> Validity: ...
    def drop(self, rows: int) -> None: ...
    def keep(self, stay: Validity) -> None: ...
    @property
    def bytes(self) -> int: ...

# Of matches that were given, those that may change: they start at `cut` or later, in one of the buckets. Return the
# places in `now` of hashes that are not among theirs, and the places of those matches whose hash is not in `now`.
def changes(
    start: Words,
    hash: Words,  # noqa: A002
    bucket: NDArray[np.uint16],
    cut: int,
    buckets: Validity | None,
    now: Words,
) -> tuple[Words, Words]: ...

# Columns of matches, and rows of them: start, end, bundle, error, offsets, ids, vars and rows.
MatchPart: TypeAlias = tuple[Words, Words, Words, Words, Words, Words, NDArray[np.uint16], Words]

# The rows of the first `back` parts in output order, then those of the others in output order, as columns in the order
# of a part; at last, which of the rows of all parts each match is. ranks: of each variable, by name.
def gathered(parts: Sequence[MatchPart], back: int, ranks: NDArray[np.uint16]) -> MatchPart: ...

# One class of events: the codes of its types (None: any), and (program, sources) of the conditions on a single event.
EventClass: TypeAlias = tuple[Words | None, Sequence[tuple[int, Words]]]

def push_lanes(
    lanes: Sequence[Session],
    threads: int,
    ts: Words,
    types: Words | tuple[NDArray[np.signedinteger[Any]], Words] | None,
    types_valid: Validity | None,
    ids: Words | int | None,
    columns: Sequence[Input],
    last: bool = False,
) -> None: ...  # as Session.push of each lane
def push_ranges(
    slices: Sequence[Session],
    threads: int,
    ranges: Sequence[tuple[int, int]],  # the rows that each session gets
    ts: Words,
    types: Words | tuple[NDArray[np.signedinteger[Any]], Words] | None,
    types_valid: Validity | None,
    ids: Words | int | None,
    columns: Sequence[Input],
    last: bool = False,
) -> None: ...
def take_in_order(
    lanes: Sequence[Session], threads: int, engine: int, ranks: NDArray[np.uint16]
) -> dict[str, Any]: ...  # as Session.take, of all lanes
def finish_lanes(lanes: Sequence[Session], threads: int) -> None: ...

class Session:
    def __init__(
        self,
        texts: Texts,
        programs: Sequence[BlockProgram],
        classes: Sequence[EventClass],
        columns: int,
        keys: Sequence[tuple[list[int], bool]],
    ) -> None: ...
    def add(self, engine: str, arrays: dict[str, Words]) -> int: ...
    def change(
        self,
        engine: int,
        programs: Sequence[BlockProgram],
        classes: Sequence[EventClass],
        columns: int,
        arrays: dict[str, Words],
        more: bool = False,
    ) -> None: ...
    def renew(self, engine: int, words: list[int], clock: int) -> int: ...
    def push(
        self,
        ts: Words,
        types: Words | tuple[NDArray[np.signedinteger[Any]], Words] | None,  # codes, or places in a list of codes
        types_valid: Validity | None,
        ids: Words | int | None,  # that of the first, the others count on from there
        columns: Sequence[Input],
        start: int = 0,  # row
        enough: int = 0,  # matches; 0: whatever comes. Of the only plan
        hold: bool = False,  # no time passes: the events may be older than earlier ones, of partitions that were reset
        again: int = 0,  # how many of the first rows are matched again
        last: bool = False,  # no event comes after the batch
        stop: int = 0,  # the row before which it ends, though later ones tell what comes; 0: at the end
        alert: bool = False,  # end where a plan under a budget begins to watch its partial matches
    ) -> int: ...  # the row to go on with: one before `stop` where so many matches wait to be taken, or where it ended
    def reset(  # the partitions of the first rows
        self,
        ts: Words,
        types: Words | tuple[NDArray[np.signedinteger[Any]], Words] | None,
        types_valid: Validity | None,
        ids: Words | int | None,
        columns: Sequence[Input],
        rows: int,
    ) -> None: ...
    def begin_at(self, events: int) -> None: ...  # of a new session: so many events of the stream came before
    def set_lane(self, number: int, lanes: int) -> None: ...  # of a new session that has all its plans
    def choose_search_ways(self, index: int, future: int) -> None: ...  # 0 where it pays, 1 never, 2 always
    def begin_again(self, fresh: int) -> None: ...  # prepare for such rows; `fresh` of them come for the first time
    def repeated(self, events: int) -> None: ...  # how many events were pushed more than once, after loading
    # How many matches of one event may wait before they have to be taken; 0: any number.
    def limit_waiting_matches(self, engine: int, most: int) -> None: ...
    def tally(self, engine: int, kind: int) -> None: ...  # of the node engine: matches are counted and not made
    def take_tally(self, engine: int) -> dict[str, Any]: ...
    def advance(self, clock: int) -> None: ...
    def finish(self) -> None: ...
    # Best effort (docs/explanation/best_effort.md), of the node engine; to be started before any event comes.
    def start_shedding(self, engine: int, seed: int) -> None: ...
    def forget_idle_partitions(self) -> None: ...  # those in which nothing is left
    def set_shedding_table(
        self, engine: int, shedding_table: dict[str, Any]
    ) -> None: ...  # acep.learning.shedding_table.SheddingTable.for_native_core
    def shadow_sample(self, engine: int, share: int) -> None: ...  # of 2**32 units
    # Touches an event (negative: no bound), the most unused ones to carry over, and more of them at once.
    def allow(self, engine: int, rate: float, carried: float, credit: float = 0.0) -> None: ...
    # Whether it has just woken, and by what it is judged whether the known future pays, which `dump` leaves out.
    def watching_state(self, engine: int) -> bytes: ...
    def load_watching_state(self, engine: int, state: bytes) -> None: ...
    def is_shedding_idle(self, engine: int) -> bool: ...  # partial matches are not watched, as tokens suffice
    def spent(self, engine: int) -> int: ...  # touches, shedding decisions included
    def woke(self, engine: int) -> bool: ...  # whether it has begun to watch partial matches since the last call
    def allow_matches(self, engine: int, most: int) -> None: ...  # from now on, beside one for each match point
    def walked(self, engine: int) -> int: ...  # how many matches were made, before any choice among them
    def bound_memory(self, engine: int, most: int) -> None: ...
    def weigh(self, engine: int) -> int: ...  # notes the charged bytes in "peak"; returns the lists looked at
    def least_memory(self, engine: int) -> int: ...  # for what is there before any event, and one node in each state
    def used_texts(self, codes: int) -> Validity: ...  # by code
    def used_ids(self) -> Words: ...  # rising
    def kept(self) -> list[int]: ...  # by key table: partitions when idle ones were last forgotten
    def set_kept(self, partitions: list[int]) -> None: ...  # after loading
    def take_trajectories(
        self, engine: int
    ) -> dict[str, Any]: ...  # as acep.learning.trajectories.log.log_of takes them
    # The match points of shadow-sampled units since trajectories were last taken, as
    # acep.learning.estimation.recall.SampledUnits.add_rows takes them; without the `first` ones.
    def shadow_points(self, engine: int, first: int = 0) -> NDArray[np.int64]: ...
    def shedding_counts(self, engine: int) -> dict[str, Any]: ...
    # The same of an engine that is given units; `key_texts`: a bit for each part of the key that is a text.
    def start_units(self, engine: int, seed: int, key_texts: int) -> None: ...
    def units_counts(self, engine: int) -> dict[str, Any]: ...
    # The same of an engine that searches. `kinds`: by column, 1 for doubles, 2 for texts, else 0; `sampling`: the share
    # of the allowance for searches to the end; `ahead`: events whose allowance may be spent ahead.
    def start_search(
        self, engine: int, seed: int, kinds: list[int], key_texts: int, sampling: float, ahead: float
    ) -> None: ...
    def search_counts(self, engine: int) -> dict[str, Any]: ...
    def take(self, engine: int) -> dict[str, Any]: ...
    def take_compressed(self, engine: int, last: bool) -> Compressed: ...
    # Of the merged engine: matches are made by `make_matches` and `make_ordered_block` only.
    def set_lazy(self, engine: int, lazy: bool) -> None: ...
    def make_matches(self, engine: int, most: int) -> int: ...  # how many were made; fewer only if there are no more
    # As `make_matches`, in the order of the output where that needs no sorting; what must be sorted is given at a go,
    # and with `whole` all matches of one time are, if they are no more than `together`.
    def make_ordered_block(self, engine: int, most: int, together: int, whole: bool) -> int: ...
    def take_counts(self, engine: int, last: bool) -> dict[str, Any]: ...
    def count_totals(self, engine: int) -> list[tuple[int, int]]: ...  # by error, scaled
    def dump(self) -> bytes: ...
    def load(self, state: bytes, clock: int = ...) -> None: ...  # `clock`: the latest time that it has seen
    def keys(self, table: int) -> Words: ...
    def numbers(self, table: int) -> Words: ...  # of the partitions that have these keys
    def work(self, engine: int) -> tuple[int, int, int]: ...
    def partial_matches(self, engine: int, clock: int) -> int: ...  # whose window is not over; alike ones may be one
    def partial_matches_in(self, engine: int, states: Sequence[int], clock: int) -> int: ...
    # The partial matches whose window is not over, in some states (none: in all), as columns: those of `take`, and
    # `states`, `sequences` and `utility`; those last extended, if there are more than `most`; `total` is their number.
    # `apart`: a row for each sequence of bound events. ValueError: the engine keeps none with their events.
    def list_partial_matches(
        self, engine: int, most: int, apart: bool, states: list[int], clock: int
    ) -> dict[str, Any]: ...
    # Of the node engine: (state, target state, slots of the registers that it compares for equality) of arcs.
    def arc_keys(self, engine: int) -> list[tuple[int, int, list[int]]]: ...
    # The error, the last variable, and the steps of each path: a variable, columns of equalities, columns of bands.
    def search_paths(self, engine: int) -> list[tuple[int, int, list[tuple[int, list[int], list[int]]]]]: ...
    def foresees(self, engine: int) -> bool: ...  # whether it asks what a batch tells of later events
    def windowed(self, engine: int) -> tuple[int, int]: ...  # events that came, and those handed on
    @property
    def bytes(self) -> int: ...

# Matches as the graph that they share: of a size that grows with events, whatever the number of matches. Columns of
# matches are those of `Session.take`, match points rising.
class Compressed:
    def count(self) -> int: ...
    def sample(self, n: int, seed: int) -> dict[str, NDArray[Any]]: ...  # drawn with replacement, all equally likely
    def cursor(self, start: int = 0) -> Cursor: ...  # from match number `start` on
    @property
    def ends(self) -> int: ...  # how many ways to end a match: events with variables, states and errors
    @property
    def cells(self) -> int: ...
    @property
    def bytes(self) -> int: ...

class Cursor:
    def next(self, limit: int) -> dict[str, NDArray[Any]]: ...  # none after the last
