# %% [markdown]
# # Late events and revisions
#
# After this notebook you can match a stream whose events come late or are corrected: wait until an answer is certain,
# or answer at once and correct the answer. You see what each of them costs in delay, in memory, and in answers taken
# back.

# %%
import numpy as np
import pandas as pd

import acep

jobs = pd.read_parquet("../examples/data/cluster_jobs.parquet")
jobs = jobs[["ts", "type", "job_id", "logical_name", "arrival_seq"]].iloc[:18_000]

# %% [markdown]
# ## The question
#
# A job is submitted, and before anything is scheduled under its name, it is submitted again. The `~` makes the order
# matter: a `SCHEDULE` that comes late makes a match wrong that looked right.

# %%
again = acep.parse("""
    PATTERN SEQ(SUBMIT first, ~SCHEDULE c, SUBMIT second)
    WHERE skip_till_next_match(first, second) { [logical_name] }
    WITHIN 30 min
""")
options = {"seq": "arrival_seq", "id": "arrival_seq"}
truth = acep.match(jobs, again, **options)
print(len(truth), "matches in the recorded order")

# %% [markdown]
# ## A stream out of order
#
# Now a fifth of the events comes late, by up to twenty minutes. `arrives` says when we get each row.

# %%
random = np.random.default_rng(3)
late = pd.to_timedelta(1200 * random.random(len(jobs)) * (random.random(len(jobs)) < 0.2), unit="s")
stream = jobs.assign(arrives=jobs.ts + late).sort_values(["arrives", "arrival_seq"])
batches = [stream.iloc[start : start + 300] for start in range(0, len(stream), 300)]
print(f"{(stream.ts < stream.ts.cummax()).mean():.0%} of the rows are older than one before them")


def run(**settings):
    """Push all batches; return a row for each match given or taken back, and the matcher."""
    matcher = acep.Matcher(again, **options, **settings)
    seen, most_held = [], 0
    for batch in batches:
        changes, arrival = matcher.push(batch.drop(columns="arrives")), batch.arrives.iloc[-1]
        seen += [(match.op, match.id, arrival - match.end) for match in changes]
        most_held = max(most_held, matcher.held)
    seen += [(match.op, match.id, pd.Timedelta(0)) for match in matcher.finish()]
    return pd.DataFrame(seen, columns=["op", "id", "delay"]), most_held, matcher


# %% [markdown]
# ## Wait until it is certain
#
# `lateness` is how late events may be. A match is given when no event can change it any more. If the bound is too
# small, events are late: they are counted and not used, and the report says that the answer is not exact.

# %%
waited = {}
for lateness in ("20 min", "10 min"):
    waited[lateness], most_held, matcher = run(lateness=lateness)
    report = matcher.report
    print(f"{lateness}: {len(waited[lateness])} matches, {report.late} events too late, exact: {report.exact}")

# %% [markdown]
# ## Answer at once, and correct the answer
#
# With `speculation="inf"` a match comes with the event that completes it. If a late event makes it wrong, it comes
# again with `op` -1 and the same `id`.

# %%
seen, most_held, matcher = run(lateness="20 min", speculation="inf")
print(seen.op.value_counts().rename({1: "given", -1: "taken back"}).to_dict())

# %% [markdown]
# Adding up `op` by `id` gives the matches that stand. They are those of the recorded order.

# %%
standing = seen.groupby("id").op.sum()
print("given or not:", sorted(standing.unique().tolist()))
print("the same matches as by waiting:", set(standing.index[standing == 1]) == set(waited["20 min"].id))
print("as many as in the recorded order:", standing.sum() == len(truth))

# %% [markdown]
# ## Between the two
#
# `speculation` may be a length of time: a match is then given that long before it is certain. More speculation gives
# matches sooner, and takes more of them back. `held` is the greatest number of events in memory.

# %%
rows = {}
for speculation in (0, "5 min", "10 min", "inf"):
    seen, most_held, matcher = run(lateness="20 min", **({"speculation": speculation} if speculation else {}))
    n_given, n_taken_back = (seen.op == 1).sum(), (seen.op == -1).sum()
    minutes = seen.delay[seen.op == 1].mean() / pd.Timedelta("1 min")
    rows[speculation] = {
        "given": n_given,
        "taken back": n_taken_back,
        "mean delay (min)": round(minutes, 1),
        "held": most_held,
    }
pd.DataFrame.from_dict(rows, orient="index")

# %% [markdown]
# ## Take an event back
#
# `op=` names a column that says whether a row adds an event or takes back the one with the same id. A correction is
# both.

# %%
matcher = acep.Matcher(again, id="id", op="op", lateness="1 h", speculation="inf")


def push(*rows):
    """Push rows of minute, type, id and op, all of one name; return the changes."""
    start = pd.Timestamp("2011-05-02")
    names = {"minute": 0, "type": 1, "id": 2, "op": 3}
    frame = pd.DataFrame({name: [row[index] for row in rows] for name, index in names.items()})
    frame["ts"], frame["logical_name"] = start + pd.to_timedelta(frame.pop("minute"), unit="min"), "x"
    return [(match.op, match.bindings) for match in matcher.push(frame)]


print(push((0, "SUBMIT", 1, 1), (5, "SUBMIT", 2, 1)))
print(push((0, "SUBMIT", 1, -1)))  # it was a mistake
print(push((2, "SUBMIT", 1, 1)))  # it was right, but later

# %% [markdown]
# ## Say that a key is complete
#
# A source often knows more than that time has passed. `advance` with a `key` says that nothing more of it comes, so
# that its events need not be held.

# %%
before = matcher.held
matcher.advance(pd.Timestamp("2011-05-02 03:00"), key={"logical_name": "x"})
matcher.snapshot()  # which forgets at once; else it is done now and then
print("events held:", before, "and then", matcher.held)

# %% [markdown]
# ## Next
#
# * [Late events](../docs/howto/late_events.md): numbers without gaps, types that are complete, budgets.
# * [Spark](spark_end_to_end.ipynb): there a watermark says how late events may be.
