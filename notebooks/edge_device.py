# %% [markdown]
# # A small device
#
# After this notebook you can run a query on a device with little memory and a part of a core: learn ahead on a large
# machine, take along a small file, follow a folder, go on after a power cut, and count in a bounded sketch. None of
# it needs Spark or Java.

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from jobs import jobs
from shown import given_up

import acep
from acep.sketches.count_min import CountMin

stream = jobs(60_000)
past, now = stream[:30_000], stream[30_000:]

# %% [markdown]
# ## The query
#
# A job of a user is killed, and a later job of the same user fails within three hours. On the device events come a few
# at a time. Any job may still be killed, and any later one may still fail, so the query holds many partial matches. In
# a table it is known what comes next, and a run without a budget leaves out most of them. A budget that suffices for
# everything shows the work without that knowledge.

# %%
query = acep.parse("""
    PATTERN SEQ(SUBMIT a, SCHEDULE b, KILL c, SUBMIT d, SCHEDULE e, FAIL f)
    WHERE skip_till_any_match(a, b, c, d, e, f) {
        [user] AND b.job_id = a.job_id AND c.job_id = b.job_id
        AND d.job_id <> c.job_id AND e.job_id = d.job_id AND f.job_id = e.job_id }
    WITHIN 3 hours
""")
exact = acep.match(now, query)
ample = acep.match(now, query, budget=acep.Budget(work=1_000)).report
print(f"{len(exact.points())} match points, {exact.report.work / len(now):.1f} touches an event in a table")
print(f"{ample.work / len(now):.1f} touches an event if nothing is known of later ones; exact: {ample.exact}")

# %% [markdown]
# ## Learn ahead
#
# A large machine runs the query over the past, without giving anything up, and writes what became of the partial
# matches. The device needs the file alone.

# %%
learned = acep.learn(past, query)
print("less than 100 kB:", len(learned) < 100_000)
acep.plots.history(learned)

# %% [markdown]
# ## A budget of memory
#
# `memory` bounds partial matches, and the matches that wait to be given. It is never exceeded. Nothing is invented;
# with less memory, less is found. The history helps where memory is very short; with more, what the query learns as
# it runs is enough.

# %%
rows = []
for memory in ("1 MB", "2 MB", "64 MB"):
    for name, history in (("without", None), ("with", learned)):
        matches = acep.match(now, query, budget=acep.Budget(memory=memory), history=history)
        rows.append((memory, name, len(matches.points()), matches.report.exact))
pd.DataFrame(rows, columns=["memory", "history", "match points", "exact"])

# %% [markdown]
# ## A budget of processor time
#
# `cpu` is a share of a core, against the clock of the events. A controller measures what events and touches cost, and
# keeps to the share on average. How much is found depends on the machine, so no figures are shown here.

# %%
matcher = acep.Matcher(query, budget=acep.Budget(cpu=0.02, memory="2 MB"), history=learned)
points = set()
for start in range(0, len(now), 2_000):
    points |= {(point.key["user"], point.point) for point in matcher.push(now[start : start + 2_000]).points()}
matcher.finish()
print("memory is kept:", matcher.report.memory <= 2 * 2**20)
print("nothing is invented:", points <= {(point.key["user"], point.point) for point in exact.points()})

# %% [markdown]
# ## Follow a folder
#
# On the device, files of events come into a folder. `acep.follow` matches them as they come, and keeps its state in
# another folder. `once=True` ends when there are no more files; without it, it waits for more.

# %%
folder = Path(tempfile.mkdtemp())
(folder / "in").mkdir()


def arrive(first, last):
    """Put files of 3,000 events into the folder."""
    for number in range(first, last):
        pq.write_table(now[3_000 * number : 3_000 * (number + 1)], folder / "in" / f"{number:02}.parquet")


options = {"state": folder / "state", "into": folder / "found", "max_files": 1, "history": learned}
options["budget"] = acep.Budget(work=2)
seen = []
arrive(0, 7)
done = acep.follow(folder / "in", query, once=True, tell=seen.append, **options)
print(done.report.events, "events,", done.report.matches, "matches")

# %% [markdown]
# Here the power goes. After the restart the follower goes on where it was: no event counts twice, and no match is
# given twice.

# %%
arrive(7, 10)
done = acep.follow(folder / "in", query, end=True, tell=seen.append, **options)
print(
    done.report.events, "events,", done.report.matches, "matches, in", len(list((folder / "found").iterdir())), "files"
)
given_up(done.report)

# %% [markdown]
# The progress of each micro-batch shows what a budget does: the bursts are cut, and unused allowance is carried over.

# %%
work = pd.Series([progress.work for progress in seen]).diff()
allowed = pd.Series([progress.allowance for progress in seen]).diff()
pd.DataFrame({"work": work, "allowed": allowed}).iloc[1:].astype(int).T

# %% [markdown]
# ## Count in bounded memory
#
# A device that counts by key needs memory for each key. A count-min sketch has a fixed size. A count is never too
# small, and it is seldom too large by more than `epsilon` of all events.

# %%
ids = now["job_id"].to_numpy()
counts = CountMin.sized(epsilon=0.002, delta=0.01, conservative=True)
for start in range(0, len(ids), 1_000):
    counts.add_all(ids[start : start + 1_000])
jobs_seen, true = np.unique(ids, return_counts=True)
wrong = counts.counts(jobs_seen) - true
print(f"{len(true):,} jobs in {counts.width * counts.depth:,} cells of {counts.total:,} events")
print(
    f"no count is too small: {(wrong >= 0).all()}; the largest error is {wrong.max() / counts.total:.3%} of all events"
)

# %% [markdown]
# ## Next
#
# * [Follow a folder](../docs/howto/follow.md), [budgets](../docs/howto/budgets.md), and [learning
#   ahead](../docs/howto/learning_ahead.md).
# * [Sketches](../docs/explanation/sketches.md): how wrong they may be.
# * [Installing](../docs/howto/installing.md): what a small device needs.
