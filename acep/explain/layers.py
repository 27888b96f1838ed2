"""Lay out a graph from left to right in layers, so that links touch neither boxes nor labels.

Boxes are in every second layer; each label has its own position in a layer between them. The order within layers is
found by sweeps over the means of neighbours, the heights by least squares that keep the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["MOST_ITEMS", "Box", "Drawing", "Link", "place"]

MOST_ITEMS = 4000
"""The greatest number of boxes and bends of links that can be placed."""

_COLUMN_GAP = 26.0
_ROW_GAP = 12.0
_SWEEPS = 12
_LOOP = 24.0

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """The size of a node."""

    width: float
    height: float


@dataclass(frozen=True)
class Link:
    """An arrow between two boxes, and the size of the label on it (0, 0: no label)."""

    source: int
    target: int
    label: Box = Box(0, 0)


@dataclass(frozen=True)
class Drawing:
    """The positions of a graph.

    ``centres`` are those of the boxes. ``routes`` has for each link its horizontal segments as (from x, to x, y), from
    its source to its target; between them it bends. A loop has one segment, above its box. ``labels`` has for each link
    the middle of the line under its label. ``backward`` are the links that run from right to left.
    """

    width: float
    height: float
    centres: tuple[Point, ...]
    routes: tuple[tuple[tuple[float, float, float], ...], ...]
    labels: tuple[Point, ...]
    backward: frozenset[int]


@dataclass
class _Item:
    """An item in a layer: a box, a label, or a passing link, with the space that it needs above and below its line."""

    layer: int
    width: float
    above: float
    below: float
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    y: float = 0.0


def place(boxes: Sequence[Box], links: Sequence[Link]) -> Drawing | None:
    """Lay a graph out; box 0 is the leftmost. Return ``None`` if there are more than :data:`MOST_ITEMS` items."""
    if len(boxes) + len(links) > MOST_ITEMS:
        return None
    backward = _backward(len(boxes), links)
    layers = _layers(len(boxes), links, backward)
    if len(boxes) + sum(abs(layers[k.target] - layers[k.source]) for k in links) > MOST_ITEMS:
        return None
    items = [_Item(layers[i], box.width, box.height / 2, box.height / 2) for i, box in enumerate(boxes)]
    for link in links:
        if link.source == link.target:
            items[link.source].above += _LOOP + link.label.height
            items[link.source].width = max(items[link.source].width, link.label.width)
    chains: list[list[int]] = []
    for i, link in enumerate(links):
        chains.append(_chain(items, link, i in backward) if link.source != link.target else [])
    columns: list[list[int]] = [[] for _ in range(max(layers) + 1)]
    for i, item in enumerate(items):
        columns[item.layer].append(i)
    columns = _reduce_crossings(items, columns)
    _align(items, columns)
    lefts, width = _left_edges(items, columns)
    top = min(item.y - item.above for item in items)
    for item in items:
        item.y -= top
    return _drawing(items, links, boxes, chains, lefts, width, backward)


def _backward(count: int, links: Sequence[Link]) -> frozenset[int]:
    """Return the links that close a cycle in a depth-first search from box 0."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    for i, link in enumerate(links):
        if link.source != link.target:
            leaving[link.source].append(i)
    state = [0] * count  # 1: on the current path, 2: done
    closing_links = set()
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(leaving[root]))]
        while stack:
            box, remaining = stack[-1]
            closing = next(remaining, None)
            if closing is None:
                state[box] = 2
                stack.pop()
                continue
            target = links[closing].target
            if state[target] == 1:
                closing_links.add(closing)
            elif state[target] == 0:
                state[target] = 1
                stack.append((target, iter(leaving[target])))
    return frozenset(closing_links)


def _layers(count: int, links: Sequence[Link], backward: frozenset[int]) -> list[int]:
    """Return the layer of each box: the length of the longest path to it, with two layers per link."""
    layers = [0] * count
    ends = [(k.target, k.source) if i in backward else (k.source, k.target) for i, k in enumerate(links)]
    ends = [(a, b) for a, b in ends if a != b]
    changed = True
    while changed:
        changed = False
        for a, b in ends:
            if layers[b] < layers[a] + 2:
                layers[b], changed = layers[a] + 2, True
    return layers


def _chain(items: list[_Item], link: Link, backward: bool) -> list[int]:
    """Add items between the ends of a link, the middle one for its label; return its items from left to right."""
    first, last = (link.target, link.source) if backward else (link.source, link.target)
    chain = [first]
    layers = range(items[first].layer + 1, items[last].layer)
    middle = layers[len(layers) // 2 // 2 * 2]
    for layer in layers:
        labelled = layer == middle
        width, above = (link.label.width, link.label.height) if labelled else (0.0, 0.0)
        items.append(_Item(layer, width, above + 2, 2))
        chain.append(len(items) - 1)
    chain.append(last)
    for a, b in pairwise(chain):
        items[a].after.append(b)
        items[b].before.append(a)
    return chain


def _reduce_crossings(items: list[_Item], columns: list[list[int]]) -> list[list[int]]:
    """Return the columns in an order with few crossings."""
    best, fewest = columns, _crossings(items, columns)
    columns = [list(column) for column in columns]
    for sweep in range(_SWEEPS):
        position = {i: n for column in columns for n, i in enumerate(column)}
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):

            def mean(i: int, forward: bool = forward, position: dict[int, int] = position) -> float:
                near = items[i].before if forward else items[i].after
                return sum(position[j] for j in near) / len(near) if near else position[i]

            column.sort(key=mean)
            position.update((i, n) for n, i in enumerate(column))
        crossings = _crossings(items, columns)
        if crossings < fewest:
            best, fewest = [list(column) for column in columns], crossings
    return best


def _crossings(items: list[_Item], columns: list[list[int]]) -> int:
    position = {i: n for column in columns for n, i in enumerate(column)}
    count = 0
    for column in columns:
        seen: list[int] = []
        for i in column:
            ends = [position[j] for j in items[i].after]
            count += sum(other > end for end in ends for other in seen)
            seen += ends
    return count


def _align(items: list[_Item], columns: list[list[int]]) -> None:
    """Set heights near the means of the neighbours, without overlaps."""
    for column in columns:
        _settle(items, column, [0.0] * len(column))
    for sweep in range(2 * _SWEEPS):
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            heights = []
            for i in column:
                near = (items[i].before if forward else items[i].after) or [i]
                if sweep >= _SWEEPS:
                    near = items[i].before + items[i].after or [i]
                heights.append(sum(items[j].y for j in near) / len(near))
            _settle(items, column, heights)


def _settle(items: list[_Item], column: list[int], heights: list[float]) -> None:
    """Set the heights of a column as near as possible to ``heights``; blocks of touching items share one shift."""
    offsets = [0.0]
    for a, b in pairwise(column):
        offsets.append(offsets[-1] + items[a].below + _ROW_GAP + items[b].above)
    blocks: list[tuple[float, int]] = []  # mean shift, size
    for height, offset in zip(heights, offsets, strict=True):
        mean, size = height - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    shifts = [mean for mean, size in blocks for _ in range(size)]
    for i, shift, offset in zip(column, shifts, offsets, strict=True):
        items[i].y = shift + offset


def _left_edges(items: list[_Item], columns: list[list[int]]) -> tuple[list[tuple[float, float]], float]:
    """Return the left and right border of each column, and the total width."""
    x, lefts = 0.0, []
    for column in columns:
        width = max((items[i].width for i in column), default=0.0)
        lefts.append((x, x + width))
        x += width + _COLUMN_GAP
    return lefts, x - _COLUMN_GAP


def _drawing(
    items: list[_Item],
    links: Sequence[Link],
    boxes: Sequence[Box],
    chains: list[list[int]],
    lefts: list[tuple[float, float]],
    width: float,
    backward: frozenset[int],
) -> Drawing:
    middles = [(sum(lefts[item.layer]) / 2, item.y) for item in items]
    routes: list[tuple[tuple[float, float, float], ...]] = []
    labels: list[Point] = []
    for i, link in enumerate(links):
        if not chains[i]:
            x, y = middles[link.source]
            top = y - boxes[link.source].height / 2
            routes.append(((x - 10, x + 10, top),))
            labels.append((x, top - _LOOP + 2))
            continue
        route = []
        for n, j in enumerate(chains[i]):
            left, right = lefts[items[j].layer]
            x, y = middles[j]
            if n == 0:
                left = x + boxes[j].width / 2
            if n == len(chains[i]) - 1:
                right = x - boxes[j].width / 2
            route.append((left, max(left, right), y) if n == 0 else (min(left, right), right, y))
        labelled = max(chains[i][1:-1], key=lambda j: items[j].above)
        labels.append(middles[labelled])
        if i in backward:
            route = [(b, a, y) for a, b, y in reversed(route)]
        routes.append(tuple(route))
    height = max(item.y + item.below for item in items)
    return Drawing(width, height, tuple(middles[: len(boxes)]), tuple(routes), tuple(labels), backward)
