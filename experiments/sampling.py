"""Measure the time inside the native core: samples of ``perf``, put to layers by the source file they fall into.

A function that was inlined is still found, since the debugger's line tables name it: the innermost frame that is in a
file of the core counts. So the core must have symbols (``make profile`` builds one that has).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from acep.native.compiled import native

__all__ = ["INSIDE", "layer_of", "take_samples", "why_not_sampled"]

FREQUENCY = 3_999  # samples a second; no multiple of what the system does by the clock
FUNCTIONS = {
    "nodes: look": (
        *("event", "process", "match", "step", "begin", "begin_by", "extend", "extend_by", "find_alike", "load"),
        *("end_broken_contiguity", "gap_cost", "replace", "may_replace", "make_from", "make_by"),
    ),
    "nodes: predicates": ("keep_passing", "keep_few_passing", "holds_for_all_frames"),
    "nodes: make": (
        *("make", "write", "write_one", "unite", "join", "are_equal"),
        *("look_up", "find_equal", "equal_registers", "hash_registers"),
    ),
    "nodes: bind": (
        *("store_new", "bind_group", "bind_after", "take_over", "make_bound", "exchange"),
        *("store", "add", "complete", "complete_row", "give", "write_match", "unite_matches"),
    ),
}
"""Layers of the folder ``nodes`` by function; its others: ``nodes: look``."""
FILES = {
    "columns in": (
        *("columns", "texts", "tables", "bind_session", "session"),
        *("given_batch", "bind_lanes", "lane_rows", "lane_matches", "threads"),
    ),
    "partitions": ("partitions", "hash"),
    "classes": ("event_classifier",),
    "programs": ("simple", "vm", "vm_blocks", "vm_rows", "vm_operations", "vm_check", "bind_vm", "numbers"),
    "nodes: look": (
        "nodes",
        "node_list",
        "prefetch",
        "register_index",
        "bound_cells",
        "candidates",
        "changing_arcs",
        "check_evaluator",
        "equal_nodes",
        "event_binder",
        "event_matcher",
        "event_pattern_arcs",
        "frames",
        "future_trials",
        "gap_cost",
        "known_future",
        "match_emitter",
        "memory_guard",
        "new_nodes",
        "node_ender",
        "node_extender",
        "node_maker",
        "node_merging",
        "node_parts",
        "node_replacement",
        "node_shedding",
        "node_store",
        "node_storer",
        "nodes_dominance",
        "nodes_state",
        "point_storer",
        "register_keys",
        "register_writer",
        "shedding_switch",
    ),
    "search": ("search", "search_plan", "search_state", "switching", "budgeted_search", "search_costs"),
    "shedding": (
        "shedding",
        "shedding_table",
        "match_vectors",
        "allowance",
        "mark",
        "trajectories",
        "shadow_sample",
        "eviction",
        "hidden_slots",
        "key_hashes",
        "touch_budget",
        "trajectory_log",
        "utilities",
        "admission",
        "sampling_unit",
        "sampling_units",
        "bounded_engine",
        "bind_shedding",
    ),
    "merged": ("merged", "automaton", "merged_state", "engine"),
    "chains": ("arena",),
    "walk": ("cursor", "ordered_walk", "compressed"),
    "counting": ("counting", "counting_sums", "big_integer", "bind_counting"),
    "windows": ("windows",),
    "completion": ("completion", "choosing", "conditions"),
    "output": ("output", "bind_arrays", "bind_output", "bind_merged", "bind_order", "order", "pooled"),
}
"""Layers of the core by source file, without its ending."""
APART = frozenset(
    {
        *("counting_state", "completion_state", "windows_state", "state", "ordered_rows", "gathering"),
        *("bind_revision", "module", "opcodes", "bind_big_integer"),
        *("partial_matches", "bind_partial_matches", "nodes_listing", "merged_listing", "sequences"),
        *("ordered_search", "bind_ordered", "bound_rows", "earliest_ends", "failures", "open_walk"),
        *("bound_walk", "bind_walks", "bound_search", "tied_conditions"),
        *("pattern_graph", "polling", "reachable", "row_conditions", "slopes", "start_pass", "state_masks"),
        *("interval_follow", "interval_search", "bind_intervals", "signal_polling", "node_archive"),
    }
)
"""Files that no workload spends time in: state as bytes, revisions, lists of partial matches, row patterns, and what
has no code of its own."""
LIBRARIES = {
    "kernel": ("[kernel", "[guest.kernel", "[vdso"),
    "memory": ("libc.so", "libc-", "libstdc++"),
    "Arrow": ("libarrow", "pyarrow"),
    "NumPy": ("numpy",),
    "Python": ("python3", "libpython", "lib-dynload"),
}
"""Layers outside the core by how a library's name begins. ``memory``: ``memcpy``, ``malloc`` and their like."""
PACKAGES = frozenset({"pyarrow", "numpy", "lib-dynload"})
"""Folders that a library is known by; ``lib/python3.11`` is none, since all packages are below it."""
INSIDE = tuple(dict.fromkeys([*FILES, *FUNCTIONS, *LIBRARIES, "other"]))
"""All layers of samples."""


def layer_of(library: str, frames: Sequence[tuple[str, str]] = ()) -> str:
    """Return the layer of a sample: ``library`` it fell into, and in the core ``frames`` (function, file), innermost
    first.

    >>> layer_of("/x/_native.so", [("std::vector<int>::size() const", "/usr/include/stl_vector.h"),
    ...                            ("acep::NodeEngine::make(acep::Arc const&)", "/x/acep/native/src/nodes/nodes.cpp")])
    'nodes: make'
    >>> layer_of("/lib/libc.so.6"), layer_of("/x/_native.so"), layer_of("/lib/unheard.so")
    ('memory', 'other', 'other')

    A frame need not have a file with folders; the frames around it tell then.

    >>> layer_of("/x/_native.so", [("??", "??"), ("acep::run", "/x/acep/native/src/nodes/nodes.cpp")])
    'nodes: look'
    """
    for function, file in frames:
        path = Path(file)
        if path.parent.parent.parts[-2:] != ("native", "src"):
            continue
        if path.stem.startswith("nodes") or path.parent.name == "nodes":
            name = function.partition("(")[0].rpartition("::")[2]
            return next((layer for layer, functions in FUNCTIONS.items() if name in functions), "nodes: look")
        return next((layer for layer, files in FILES.items() if path.stem in files), "other")
    if frames or Path(library).name.startswith("_native"):
        return "other"
    path = Path(library)
    names = [library, path.name, *(part for part in path.parts if part in PACKAGES)]
    return next(
        (layer for layer, prefixes in LIBRARIES.items() if any(name.startswith(prefixes) for name in names)), "other"
    )


@cache
def why_not_sampled() -> str | None:
    """Return the reason if samples inside the core cannot be taken here, else ``None``."""
    core = native()
    if core is None:
        return "there is no native core"
    for tool in ("perf", "addr2line"):
        if shutil.which(tool) is None:
            return f"{tool} is not on this machine"
    if b".debug_info" not in Path(str(core.__file__)).read_bytes():
        return "the core has no symbols (make profile builds one that has)"
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-o", os.devnull, "true"]
    if subprocess.run(command, capture_output=True, check=False).returncode:  # noqa: S603
        return "perf may not record here"
    return None


def take_samples(work: Callable[[], object]) -> Counter[str]:
    """Sample by layer while ``work`` runs in this process. Raises :class:`RuntimeError` if perf fails."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        _record(work, data)
        command = ["perf", "script", "--force", "-i", str(data), "-F", "ip,dso"]
        script = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return count_samples(script, str(getattr(native(), "__file__", "")))


def count_samples(script: str, core: str) -> Counter[str]:
    """Count samples by layer from the output of ``perf script -F ip,dso``; ``core``: the file of the core in this
    process."""
    hits: Counter[tuple[str, int]] = Counter()
    for line in script.splitlines():
        address_text, _, library = line.strip().partition(" ")
        name = library.strip().removeprefix("(").removesuffix(")")
        hits[name, int(address_text, 16) if name == core else 0] += 1
    frames = _frames(core, {address for name, address in hits if name == core})
    samples: Counter[str] = Counter()
    for (name, address), times in hits.items():
        samples[layer_of(name, frames.get(address, []))] += times
    return samples


def _record(work: Callable[[], object], data: Path) -> None:
    control, to_perf = os.pipe()
    from_perf, acknowledge = os.pipe()
    command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-D", "-1", "-p", str(os.getpid())]
    command += [f"--control=fd:{control},{acknowledge}", "-o", str(data)]
    pipes = (control, acknowledge)
    with subprocess.Popen(command, pass_fds=pipes, stderr=subprocess.PIPE, text=True) as perf:  # noqa: S603
        # This process is pinned to one core, and so is what it starts; perf need not share it.
        os.sched_setaffinity(perf.pid, range(os.cpu_count() or 1))
        os.close(control)
        os.close(acknowledge)
        try:
            _send_command(to_perf, from_perf, b"enable\n")
            work()
            _send_command(to_perf, from_perf, b"disable\n")
        finally:
            perf.send_signal(signal.SIGINT)
            errors = perf.communicate()[1]
            os.close(to_perf)
            os.close(from_perf)
    if not data.exists():
        raise RuntimeError(f"perf has recorded nothing: {errors.strip()}")


def _send_command(to_perf: int, from_perf: int, word: bytes) -> None:
    try:
        os.write(to_perf, word)
        answer = os.read(from_perf, 16)
    except BrokenPipeError:
        answer = b""
    if not answer:
        raise RuntimeError("perf does not answer")


def _frames(core: str, addresses: Iterable[int]) -> Mapping[int, list[tuple[str, str]]]:
    """Return (function, file) of addresses in this process, innermost first."""
    wanted = list(addresses)
    if not wanted:
        return {}
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(core)]
    base = min(int(fields[0].partition("-")[0], 16) - int(fields[2], 16) for fields in maps)
    command = ["addr2line", "-afiC", "-e", core]
    offsets = "\n".join(f"{address - base:#x}" for address in wanted)
    output = subprocess.run(command, input=offsets, capture_output=True, text=True, check=True).stdout  # noqa: S603
    frames_by_address: dict[int, list[tuple[str, str]]] = {}
    lines = iter(output.splitlines())
    for line in lines:
        if line.startswith("0x"):
            frames = frames_by_address.setdefault(int(line, 16) + base, [])
        else:
            frames.append((line, next(lines).rpartition(":")[0]))
    return frames_by_address
