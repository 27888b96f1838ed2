# %% [markdown]
# # Tuning a query
#
# After this notebook you can find out what is wrong with a query and its data, why there are no matches or too many,
# and which budget a query needs. The tools are `acep.lint`, `acep.why` and `acep.tune`, on a command line `acep lint`,
# `acep why` and `acep tune`. All numbers are counted on the events that you give.

# %%
import acep
from acep.tuning.many import why_many

jobs = acep.read_events("../examples/data/cluster_jobs.parquet").slice(0, 60_000)

# %% [markdown]
# ## Mistakes that lint finds
#
# Two jobs of one name fail after it was submitted. This query has two mistakes, and without lint it would just find
# nothing.

# %%
rising = """
    PATTERN SEQ(SUBMIT a, Fail b, FAIL c)
    WHERE skip_till_any_match(a, b, c) { [logical_name] AND b.job_id > a.job_id AND c.job_id > b.job_id }
    WITHIN 1 ms
"""
acep.lint(jobs, rising, seq="arrival_seq")

# %% [markdown]
# Each finding has a severity, a code, a place, and a hint. With both mended, nothing looks wrong.

# %%
rising = rising.replace("Fail", "FAIL").replace("1 ms", "1 h")
acep.lint(jobs, rising, seq="arrival_seq")

# %% [markdown]
# ## Why no match: why
#
# `acep.why` says how far the events of one key came, and which conditions failed there. Without a key it takes the one
# that came nearest.

# %%
matches = acep.match(jobs, rising, seq="arrival_seq")
matched = {match.key["logical_name"] for match in matches}
failing = acep.match(jobs, "PATTERN FAIL f WHERE [logical_name] WITHIN 1 h", seq="arrival_seq")
without = next(match.key for match in failing if match.key["logical_name"] not in matched)
acep.why(jobs, rising, key=without, seq="arrival_seq")

# %% [markdown]
# Or name the events that you expected to be a match, by their ids: here the row numbers of the first three events of
# that job. Then it says why exactly these are none.

# %%
names = jobs["logical_name"].to_pylist()
rows = [number for number, name in enumerate(names) if name == without["logical_name"]][:3]
acep.why(jobs, rising, rows=rows, seq="arrival_seq")

# %% [markdown]
# ## Why so many: why_many
#
# `why_many` says which variable multiplies the matches, and counts what other choices would leave (`acep why
# --many`).

# %%
why_many(jobs, rising, seq="arrival_seq")

# %% [markdown]
# ## The cost, by tune
#
# Where conditions compare events by `<` or `>`, all combinations have to be tried. Here two jobs of a user are killed,
# one after the other, and a third one finishes.

# %%
later = """
    PATTERN SEQ(SUBMIT a, KILL b, SUBMIT c, KILL d, FINISH e)
    WHERE skip_till_any_match(a, b, c, d, e) {
        [user] AND b.job_id = a.job_id AND c.job_id > b.job_id
        AND d.job_id = c.job_id AND e.job_id > d.job_id }
    WITHIN 1 hour
"""
tuned = acep.tune(jobs, later, seq="arrival_seq", sample=30_000, target_recall=0.8, effort=4_000_000)
tuned

# %% [markdown]
# It drew whole users by chance, ran the query on them exactly, and then under several budgets. *work* is in touches
# for each event: one look at one partial match. `least` is the smallest budget tried that finds 80 % of the match
# points, and `knee` the one beyond which a unit of work finds less than up to it. The last lines say which
# questions the sample cannot answer.

# %%
acep.plots.recall_curve(tuned.to_pandas(), work=tuned.exact.work)

# %% [markdown]
# ## Try it
#
# The budget was measured on a sample. The rest of the stream shows whether it holds. The work of the exact run is that
# under a budget which suffices for everything: a run without one knows all events of a table, and needs less.

# %%
budget = acep.Budget(work=tuned.least.budget)
remaining = acep.read_events("../examples/data/cluster_jobs.parquet").slice(60_000, 60_000)
within_budget = acep.match(remaining, later, seq="arrival_seq", budget=budget)
exact = acep.match(remaining, later, seq="arrival_seq", budget=acep.Budget(work=10_000))
assert exact.report.exact
print(f"{len(within_budget.points()) / len(exact.points()):.0%} of {len(exact.points())} match points, with")
print(f"{within_budget.report.work / exact.report.work:.0%} of the work of the exact run")

# %% [markdown]
# ## Next
#
# * [Tune a query](../docs/howto/tuning.md) has all codes and options.
# * [Choosing a budget](choosing_a_budget.ipynb) does by hand what `acep.tune` does.
# * [Budgets](../docs/howto/budgets.md): of work, of time, of memory.
