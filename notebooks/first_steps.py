# %% [markdown]
# # First steps
#
# In ten minutes you go from the install to pictures of patterns in recorded data. You find a fall and a rise in a
# series, a step that does not come, a series of steps of which one is missing, and sessions; and you get back to your
# own rows.
#
# In a clone of the repository, `make venv` installs acep with pandas and matplotlib into `.venv`, and
# `.venv/bin/python` runs it. Into an environment of your own, `pip install '.[pandas,plot]'` does ([other
# ways](../docs/howto/installing.md)).
#
# ## The data
#
# Two streams come with the repository ([examples/data](../examples/data/README.md)). The first one has the jobs of a
# large computing cluster: each row says when something happened to a job.

# %%
import numpy as np
import pandas as pd

import acep

jobs = pd.read_parquet("../examples/data/cluster_jobs.parquet")
jobs[["ts", "type", "job_id", "user"]].head(4)

# %% [markdown]
# An event is a row with a time (`ts`) and a type. All other columns are attributes, which conditions can use. If
# several events have the same time, `seq=` names the column that has their order; here it is `arrival_seq`.
#
# ## A fall and a rise
#
# The second stream has the accelerometer of a phone, a hundred samples a second, while people stand up, walk, and sit
# down. We add the strength of the acceleration, and take one person's phone.

# %%
sensors = pd.read_parquet("../examples/data/har_phone_watch.parquet")
sensors["strength"] = np.sqrt(sensors.x_acc**2 + sensors.y_acc**2 + sensors.z_acc**2)
phone = sensors[sensors.key == "s07_sp"]

v_shape = """
    PATTERN SEQ(ANY top, ANY+ down[]{3}, ANY+ up[]{3})
    WHERE partition_contiguity(top, down[], up[]) {
        [key]
        AND down[1].strength < top.strength AND down[i].strength < down[i-1].strength
        AND up[1].strength > down[down.LEN].strength AND up[i].strength > up[i-1].strength
        AND top.strength - down[down.LEN].strength > 8
        AND up[up.LEN].strength - down[down.LEN].strength > 8 }
    WITHIN 1 s
    OUTPUT LONGEST NON OVERLAP
"""
dips = acep.match(phone, v_shape, seq="arrival_seq")
print(len(dips), "matches; the first one:", dips[0].bindings)

# %% [markdown]
# * `SEQ` has the events of a match in their order. `down[]{3}` is a variable that binds three events or more;
#   `down[1]` is the first of them, `down[i-1]` the one before each, and `down[down.LEN]` the last.
# * `partition_contiguity` and `[key]` ask that the events follow each other in the rows of one `key`.
# * `WITHIN` bounds the time of a match. `LONGEST NON OVERLAP` takes the longest match, and then goes on after it.
#
# `bindings` has row numbers. The plot shows a match in its series.

# %%
acep.plots.match_over_series(phone, dips[0], "strength")

# %% [markdown]
# `events` gives back your own rows, with their labels, and says which variable they are bound to.

# %%
dips.events(dips[0])[["ts", "type", "strength", "variable"]].head(5)

# %% [markdown]
# ## A step that does not come
#
# A job fails, and for an hour no job of the same name finishes. The `~` says that no such event may come. At the end
# of a pattern it holds for the rest of the window. A job that fails again and again would give a match each time, so
# another negation asks that no other failure came in the hour before.

# %%
down = """
    PATTERN SEQ(~FAIL before, FAIL f, ~FINISH g)
    WHERE [logical_name]
    WITHIN 1 h
"""
outages = acep.match(jobs, down, seq="arrival_seq")
failures = (jobs.type == "FAIL").sum()
print(f"{failures:,} failures, {len(outages)} of them begin an outage")

# %%
acep.plots.timeline(outages, most_keys=12)

# %% [markdown]
# `events()` gives the rows of the frame that the matches bind, with their labels. So pandas can count.

# %%
outages.events().groupby("user").size().nlargest(3)

# %% [markdown]
# ## Steps of which one is missing
#
# A job is submitted, scheduled, and finishes. Recorders lose events; here 30 rows, by chance. Then an exact pattern
# does not find the jobs that they belong to.

# %%
steps = """
    PATTERN SEQ(SUBMIT s, SCHEDULE c, FINISH f)
    WHERE skip_till_next_match(s, c, f) { [job_id] }
    WITHIN 2 days
    OUTPUT NON OVERLAP
"""
recorded = jobs.drop(jobs.sample(30, random_state=1).index)
all_steps = acep.match(jobs, steps, seq="arrival_seq", output="count")
exact = acep.match(recorded, steps, seq="arrival_seq", output="count")
print(f"{int(all_steps):,} jobs did all steps; {int(all_steps - exact)} of them are not found in what was recorded")

# %% [markdown]
# With `errors=1` a match may lack one event. The weight `None` says that the last one must be there: without it, each
# job that has not finished would count.

# %%
query = acep.parse(steps, errors=1, weights={"f": None})
matches = acep.match(recorded, query, seq="arrival_seq")
incomplete = matches.to_pandas(flat=True).query("error > 0")
print(f"with one error {len(matches):,} jobs are found")
incomplete[["job_id", "s", "c", "f", "error"]]

# %% [markdown]
# The missing step is `<NA>`. Of the other jobs the last step is lost, and the weight excludes them. The plot shows
# these jobs and a few complete ones, with a row for each.

# %%
few = recorded[recorded.job_id.isin([*incomplete.job_id, *matches.to_pandas(flat=True).job_id[::9000]])]
acep.plots.timeline(acep.match(few, query, seq="arrival_seq"))

# %% [markdown]
# ## Sessions
#
# A session is a series of events without a long pause. Here: failures of one user, none more than ten minutes after
# the one before. `RETURN` computes values of a match, and `HAVING` keeps the matches with five failures or more.

# %%
session = """
    PATTERN FAIL+ f[]
    WHERE partition_contiguity(f[]) { [user] AND f[i].ts - f[i-1].ts <= 10 min }
    WITHIN 1 day
    HAVING count(f[]) >= 5
    RETURN count(f[]) AS failures
    OUTPUT LONGEST NON OVERLAP
"""
sessions = acep.match(jobs[jobs.type == "FAIL"], session, seq="arrival_seq")
table = sessions.to_pandas(flat=True)
table[["user", "start", "failures"]].nlargest(4, "failures")

# %%
acep.plots.timeline(sessions)

# %% [markdown]
# ## Next
#
# * [The basics](../docs/tutorial/basics.md), on streams that are small enough to check by hand: batch by batch,
#   tables, budgets.
# * [Recipes](../docs/howto/recipes.md): how usual things are said; [the language](../docs/reference/language.md).
# * [More notebooks](README.md): tuning, Spark, late events, patterns that change, a small device.
