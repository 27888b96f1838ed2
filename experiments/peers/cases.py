"""Which peer runs which workload, by which program, and whether it means the same there."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CASES", "Case"]

SAME = "same meaning"


@dataclass(frozen=True)
class Case:
    """``peer`` as it is called in the table; ``jars`` its package; ``program`` the class that runs ``pattern`` with a
    ``window`` as the peer counts it. ``meaning``: ``same meaning``, perhaps with how it was got, or what differs.
    ``binds``: the program writes down what the matches of the first events bind."""

    workload: str
    peer: str
    jars: str
    program: str
    pattern: str
    window: int
    meaning: str = SAME
    binds: bool = False

    @property
    def same(self) -> bool:
        """Return whether its matches are ours."""
        return self.meaning.startswith(SAME)


def _flink() -> list[Case]:
    # Flink's windows leave out their end: 500 positions are differences below 500, 10,000 ticks are below 10,001.
    nfa, stream = "Flink CEP, NFA alone", "Flink CEP, DataStream"
    series = f"{SAME}: the first event is a variable of its own"
    chosen = f"{SAME}: all events between are bound, and a function picks the series among them"
    differs = "differs: b is only the next low volume after each prefix of the series"
    patterns = [
        ("w1-contiguity", "w1-contiguity", 500, series),
        ("w1-contiguity", "w1-contiguity-plain", 500, SAME),
        ("w1-next", "w1-next", 500, chosen),
        ("w1-next", "w1-next-own", 500, differs),
        ("w2-next", "w2-next", 10_001, SAME),
        ("w2-any", "w2-any", 10_001, SAME),
        ("w3-any", "w3-any", 101, SAME),
        ("v-shape", "v-shape", 0, SAME),
    ]
    cases = [
        Case(w, nfa, "flink", "FlinkNfa", pattern, window, how, binds=True) for w, pattern, window, how in patterns
    ]
    cases += [
        Case(w, stream, "flink", "FlinkStream", pattern, window, how)
        for w, pattern, window, how in patterns
        if pattern in ("w1-contiguity", "w1-next", "w2-next", "w2-any", "v-shape")
    ]
    return [*cases, Case("v-shape", "Flink SQL, MATCH_RECOGNIZE", "flink", "FlinkStream", "v-shape-sql", 0)]


def _siddhi() -> list[Case]:
    return [
        Case("w2-next", "Siddhi", "siddhi", "SiddhiPeer", "w2-next", 10_000),
        Case("v-shape", "Siddhi", "siddhi", "SiddhiPeer", "v-shape", 0),
    ]


CASES = tuple(sorted([*_flink(), *_siddhi()], key=lambda case: case.workload.replace("v-shape", "x")))
