# %% [markdown]
# # Reading the history graph
#
# After this notebook you can see which partial matches of a query are worth their cost, in pictures and in numbers.
# Under a budget, the policy `history` keeps what its history says will find the most. The history is a graph: its
# vertices are *match vectors*, groups of partial matches that may end alike. This notebook learns a history, draws
# it, and looks for the vectors that matter.

# %%
import tempfile
from pathlib import Path

import numpy as np
from jobs import jobs
from shown import given_up

import acep
from acep.cli import main
from acep.learning.history.graph import History
from acep.learning.history.sums import SUMS

QUERY = acep.parse(
    """
    PATTERN SEQ(SUBMIT a, SCHEDULE b, FAIL c, SUBMIT d, SCHEDULE e, FINISH f)
    WHERE skip_till_any_match(a, b, c, d, e, f) {
        [user] AND b.job_id = a.job_id AND c.job_id = b.job_id
        AND d.job_id <> c.job_id AND e.job_id = d.job_id AND f.job_id = e.job_id }
    WITHIN 1 hour
    """
)

# %% [markdown]
# A job of a user fails, and a later job of the same user finishes. `acep.learn` runs this exactly over events that
# are known and gives the bytes of a file; on a command line, `acep learn QUERY EVENTS --output history.acep` writes
# it.

# %%
stream = jobs(40_000)
past, later = stream.slice(0, 20_000), stream.slice(20_000)
learned = acep.learn(past, QUERY)
history = History.from_bytes(learned)
assert history.epochs > 0

# %% [markdown]
# `acep history FILE` prints what is in such a file, the vectors that were visited most first. *State* is the variable
# that was bound last; *remaining* is the share of the window that is left; *since* is the share of the window that has
# passed since the last event was bound.

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "history.acep"
    file.write_bytes(learned)
    main(["history", str(file), "--limit", "8"])

# %% [markdown]
# ## The picture
#
# With `--svg history.svg` it draws the graph. Green boxes are vectors; red balls are match bundles, in the order of
# time. A line leads from where partial matches were to where they went, the heavier the more did.

# %%
acep.plots.history_graph(history, most=16)

# %% [markdown]
# `acep.plots.history` draws the chance to complete, by state and by what remains of the window.

# %%
acep.plots.history(history)

# %% [markdown]
# ## The numbers
#
# `History.sums` has them by vector. From `reached` of its `visits` something was found. `unknown` are those of which
# the end was not seen; they are left out of the chance. `own` are the touches of partial matches while they were
# there: one for each event of a type that could go on from their state, whether or not an index spared the look. A
# vector has its times as numbers of bins: `remaining` counts eighths of the window from 0 to 7, and `since` is 0 below
# 1/64 of the window, 1 below 1/16, 2 below 1/4, and 3 from there on.

# %%
vectors = history.visited()
parts = history.grid.parts(vectors)
sums = dict(zip(SUMS, history.sums(vectors).T, strict=True))


def chance(chosen):
    """Return the share of the visits of some vectors from which something was found."""
    n_ended = sums["visits"][chosen].sum() - sums["unknown"][chosen].sum()
    return sums["reached"][chosen].sum() / n_ended


for state in np.unique(parts.state):
    in_state = parts.state == state
    touched = sums["own"][in_state].sum() / sums["own"].sum()
    print(f"{history.names[state]}: chance {chance(in_state):6.1%}, {touched:6.1%} of the touches")

# %% [markdown]
# A partial match that waits for more has a better chance when it has seen the failure, and a better one with much of
# the window left than with little.

# %%
state = np.array([history.names[number] for number in parts.state])
assert chance(state == "c") > chance(state == "b")
long, short = (state == "c") & (parts.remaining >= 4), (state == "c") & (parts.remaining < 4)
print(f"after the failure: {chance(long):.1%} with half of the window left or more, {chance(short):.1%} with less")
assert chance(long) > chance(short)

# %% [markdown]
# ## What does not matter
#
# Under skip till any match a partial match stays where it is when it has bound its next event, for another one could
# follow. Here that is rare: a job is scheduled soon after it was submitted, and rarely twice. So a submission waits
# to the end of its window, and finds next to nothing. It costs little, too: a SCHEDULE is looked up by its job, so that
# it touches the submissions of that job alone.

# %%
idle = (state == "a") & (parts.since > 0)
touched = sums["own"][idle].sum() / sums["own"].sum()
print(f"idle: chance {chance(idle):.2%}, {touched:.0%} of the touches")
assert chance(idle) < 0.01
assert touched < 0.25

# %% [markdown]
# ## What matters most
#
# Most is found for its cost where `reached`, over the touches that are still to come of a partial match (`rest`) and
# of what comes of it (`descendants`), is greatest. Of vectors with few visits too little is known.

# %%
cost = np.maximum(sums["rest"] + sums["descendants"], 1.0)
enough = sums["visits"] >= 30
order = np.argsort(-sums["reached"] / cost * enough)
print("state  remaining  since   chance  touches")
for row in order[:10]:
    vector = f"{state[row]:5}  {parts.remaining[row]:9}  {parts.since[row]:5}"
    print(f"{vector}  {chance([row]):7.1%}  {cost[row] / sums['visits'][row]:7.1f}")
assert not idle[order[:10]].any()

# %% [markdown]
# ## Learning goes on
#
# A history can be learned from more, and it serves the next run: here under a budget that does not suffice. It serves
# its own query only.

# %%
both = acep.learn(later, QUERY, history=learned)
assert History.from_bytes(both).epochs > history.epochs
matches = acep.match(later, QUERY, budget=acep.Budget(work=0.1), history=learned)
given_up(matches.report)
assert not matches.report.exact
assert matches.report.work <= 0.1 * later.num_rows

try:
    acep.match(later, acep.regex("SUBMIT FAIL", within="1 h"), budget=acep.Budget(work=2), history=learned)
except acep.SnapshotError as error:
    print(error)
else:
    raise AssertionError("a history of another query was taken")
