# %% [markdown]
# # Replaying a stream under an error budget and a budget of processor time
#
# After this notebook you can try a stream, before it comes, on the share of a core that it will have. A recorded
# stream is replayed batch by batch, as if it came now. The *error budget* says how many events a match may lack: it
# is part of the question. The *budget of processor time* says how much of a core may be used to answer it.

# %%
import time

from jobs import jobs

import acep

TEXT = """
    PATTERN SEQ(SUBMIT a, SCHEDULE b, KILL c, SUBMIT d, SCHEDULE e, FAIL f)
    WHERE skip_till_any_match(a, b, c, d, e, f) {
        [user] AND b.job_id = a.job_id AND c.job_id = b.job_id
        AND d.job_id <> c.job_id AND e.job_id = d.job_id AND f.job_id = e.job_id }
    WITHIN 12 hours
"""
QUERY = acep.parse(TEXT)

# %% [markdown]
# A job of a user is killed, and within twelve hours of its submission another one of the same user fails.

# %%
stream = jobs(75_000)
BATCH = 5_000
first, last = (stream["ts"][row].as_py() for row in (0, stream.num_rows - 1))
recorded = (last - first).total_seconds()
print(f"{stream.num_rows:,} events of {recorded / 3600:.0f} hours")


def replay(**options):
    """Return the matches by their errors, the match points, the report, and the processor time in seconds."""
    matcher = acep.Matcher(QUERY, **options)
    errors, points, seconds = {}, set(), 0.0
    for start in range(0, stream.num_rows, BATCH):
        began = time.thread_time()
        matches = matcher.push(stream.slice(start, BATCH))
        seconds += time.thread_time() - began
        table = matches.to_arrow().flatten().group_by(["key.user", "end", "error"]).aggregate([([], "count_all")])
        for row in table.to_pylist():
            errors[row["error"]] = errors.get(row["error"], 0) + row["count_all"]
            points.add((row["key.user"], row["end"]))
    matcher.finish()
    return errors, points, matcher.report, seconds


# %% [markdown]
# ## The error budget
#
# With `errors=1` one event of a match may be missing; how a job ended must be known (`None`: it may not be missing).
# Matches without an error are found as before. `work=AMPLE` is a budget that suffices for everything, so that the work
# can be compared with that of smaller budgets below: a run without one leaves out what it knows to be in vain from
# later events of the batch, and a run under a budget does not.

# %%
AMPLE = 10_000
errors, points, report, seconds = replay(budget=acep.Budget(work=AMPLE))
print(f"no error:  {sum(errors.values()):7,} matches, {report.work:12,} touches")
MISSING = {"errors": 1, "weights": {"c": None, "f": None}}
more, exact, full, needed = replay(budget=acep.Budget(**MISSING, work=AMPLE))
print(f"one error: {sum(more.values()):7,} matches, {full.work:12,} touches")
assert set(errors) == {0}
assert more[0] == errors[0]
assert more[1] > errors[0]
assert points <= exact
assert full.work > report.work
assert report.exact
assert full.exact

# %% [markdown]
# ## The budget of processor time
#
# More is found, and it takes more. Now 5 % of a core must do. The clock that counts is that of the events, and
# `speed` says how many times as fast as that clock the stream comes: here so fast that there is half of the time that
# the exact answer took. Nothing waits for that clock: the notebook pushes the batches as fast as they are done.

# %%
CPU = 0.05
speed = recorded * CPU / (needed / 2)
budget = acep.Budget(**MISSING, cpu=CPU, speed=speed)

fewer, points, less, used = replay(budget=budget)
print(f"exact: {less.exact} - fewer touches: {less.work < full.work} - fewer match points: {len(points) < len(exact)}")
assert less.work < full.work
assert not less.exact

# %% [markdown]
# How many they are depends on the machine, so the numbers are not shown here; `print(less)` shows them.
#
# What is found is right: a budget loses matches, it invents none.

# %%
assert points < exact
assert all(fewer.get(error, 0) <= count for error, count in more.items())

# %% [markdown]
# The share is held on average, and nearly, by a controller that measures what events and touches cost. It begins with
# the share of a second in hand, which counts where a replay is as short as this one. Single batches may take longer,
# and two runs are not the same.

# %%
allowed = CPU * (recorded / speed + 1)
assert used < 1.5 * allowed  # what could not be foreseen comes on top

# %% [markdown]
# ## The same answer each time
#
# A budget of `work` counts touches instead of time. The same stream has the same answer, on every machine.

# %%
budget = acep.Budget(**MISSING, work=full.work / full.events / 4)
_, once, counted, _ = replay(budget=budget)
_, again, _, _ = replay(budget=budget)
print(f"{len(once):,} of {len(exact):,} match points with {counted.work / full.work:.0%} of the work")
assert once == again
assert once < exact
assert counted.work <= budget.work * counted.events
