# %% [markdown]
# # Patterns that change
#
# After this notebook you can change a pattern while its stream runs: replace a query by another version, with partial
# matches that go on; write an automaton with registers, and change its arcs; and correct a pattern from a time that
# has passed.

# %%
import numpy as np
import pandas as pd

import acep

jobs = pd.read_parquet("../examples/data/cluster_jobs.parquet").iloc[:30_000]
half = len(jobs) // 2
first, second = jobs.iloc[:half], jobs.iloc[half:]

# %% [markdown]
# ## Replace a query
#
# The first version finds jobs that are killed within an hour. In the middle of the stream, failures become what
# matters. A matcher that is `dynamic` takes the new version; `replace` returns how many partial matches go on.

# %%
text = """
    PATTERN SEQ(SUBMIT s, SCHEDULE c, {} e)
    WHERE skip_till_next_match(s, c, e) {{ [job_id] }}
    WITHIN 1 h
"""
matcher = acep.Matcher(text.format("KILL"), seq="arrival_seq", dynamic=True)
before = matcher.push(first)
went_on = matcher.replace(text.format("FAIL"))
after = matcher.push(second)
print(f"{len(before)} killed, {len(after)} failed, {went_on} partial matches went on")

# %% [markdown]
# A new matcher from the same moment would not find the jobs that were submitted before the change.

# %%
fresh = acep.match(second, text.format("FAIL"), seq="arrival_seq")
print(len(after) - len(fresh), "of the failed jobs began before the change")

# %% [markdown]
# A partial match goes on if both versions agree on what it has bound so far. The strategy, the window and the
# partition have to stay; another one is refused with a reason.

# %%
try:
    matcher.replace(text.format("FAIL").replace("1 h", "2 h"))
except acep.QueryError as error:
    print(error)

# %% [markdown]
# ## An automaton
#
# Counters and values that decide where to go on are easier to say as states and arcs. Here: the acceleration of a
# phone falls, sample by sample, and then it rises. The registers `low` and `downs` keep the last value and the number
# of falls.

# %%
sensors = pd.read_parquet("../examples/data/har_phone_watch.parquet")
sensors = sensors[sensors.key == "s07_sp"].iloc[:6_000]
sensors["strength"] = np.sqrt(sensors.x_acc**2 + sensors.y_acc**2 + sensors.z_acc**2).astype(float)


def fall(min_samples):
    """Return the arc that ends a fall of so many samples or more, with a rise."""
    return acep.arc("falling", "end", f"e.strength > r.low AND r.downs >= {min_samples}", bind="rise")


start = acep.arc("begin", "falling", "e.strength > 15", {"low": "e.strength"}, bind="top")
on = acep.arc("falling", "falling", "e.strength < r.low", {"low": "e.strength", "downs": "r.downs + 1"}, bind="down")
registers = {"low": float, "downs": 0}
falls = acep.Automaton([start, on, fall(6)], final="end", registers=registers, keys="key", window="1 s")
acep.plots.automaton(falls)

# %%
matches = acep.match(sensors, falls, type=None, seq="arrival_seq")
longest = max(matches, key=lambda match: match.values["downs"])
print(len(matches), "falls of six samples or more; the longest has", longest.values["downs"])
acep.plots.match_over_series(sensors, longest, "strength")

# %% [markdown]
# ## Change its arcs
#
# Six samples are too few: the second half shall have nine. `change` adds and removes arcs. A fall that has begun goes
# on with its registers.

# %%
matcher = acep.Matcher(falls, type=None, seq="arrival_seq", dynamic=True)
early = matcher.push(sensors.iloc[:3_000])
matcher.change(add=[fall(9)], remove=[fall(6)])
late = matcher.push(sensors.iloc[3_000:])
print(len(early), "in the first half, and then", len(late))
print("falls in the second half:", sorted({match.values["downs"] for match in late}))

# %% [markdown]
# ## Change ahead
#
# A change that is known before its time is declared with `since=`, the time of the first event that it holds for. The
# whole stream may then come in one push.

# %%
matcher = acep.Matcher(falls, type=None, seq="arrival_seq", dynamic=True)
matcher.push(sensors.iloc[:1])
matcher.change(add=[fall(9)], remove=[fall(6)], since=sensors.ts.iloc[3_000])
ahead = matcher.push(sensors.iloc[1:])
print("the same falls:", [match.end for match in ahead] == [match.end for match in [*early, *late]])

# %% [markdown]
# ## Correct the past
#
# A pattern was wrong since a time that has passed. With `speculation`, `revise` takes the version that should have
# held, and the matches that it changes come with their `op`: -1 for those that are taken back, 1 for those that are
# new.

# %%
options = {"seq": "arrival_seq", "lateness": "12 h", "speculation": "inf", "dynamic": True}
matcher = acep.Matcher(text.format("KILL"), **options)
killed = matcher.push(jobs)
changes = matcher.revise(text.format("FAIL"), since=second.ts.iloc[0])
ops = pd.Series([match.op for match in changes]).value_counts()
print(f"{len(killed)} given; then {ops[-1]} taken back, and {ops[1]} new")

# %% [markdown]
# Together they are what a replacement at that time would have given.

# %%
print("the same number:", len(killed) - ops[-1] + ops[1] == len(before) + len(after))

# %% [markdown]
# ## Next
#
# * [Hand-written automata](../docs/howto/automata.md): all kinds of arcs, in Python and in files.
# * [Spark](../docs/reference/spark_changes.md#queries-that-are-replaced) and [a folder](../docs/howto/follow.md) take
#   versions of a query as numbered files.
