"""How zeros lie in a feature map: what is counted of them, burin's made-up patterns, and which of these come nearest.

The patterns are those of compiler/synthetic_zeros.cpp, written again: with its constants (the defaults of Pattern) and
the same seed the same values of an image become zero. Here the constants are arguments, so that they can be fitted.
feature_maps.py --fit prints what fits. It needs numpy.
"""
import functools
import itertools
import math
import typing

import numpy as np

TILES = (4, 8, 16)
LENGTHS = (2, 4, 8)  # those of ActivationZeros::kRuns, without single values
QUANTILES = (0.1, 0.5, 0.9)
# What is compared, as shares. Each group counts as much as another, and so does each column within its group.
GROUPS = {
    "tiles": tuple(f"dead {side}x{side}" for side in TILES),
    "runs": tuple(f"runs of {length}" for length in LENGTHS),
    "stretches": tuple(f"in {length}+" for length in LENGTHS),
    "channels": ("dead channels", *(f"channels {100 * quantile:.0f} %" for quantile in QUANTILES)),
}
STRETCH = "stretch"  # the mean length of one, in values
LEAST_SHARE = 0.01  # of zeros; where there are fewer nothing is fitted
IMAGES = 5  # of each pattern


def dead_tiles(zero, rows, columns):
    """Which tiles of each channel are zero everywhere; what the border cuts off a tile counts as zero."""
    channels, height, width = zero.shape
    padded = np.pad(zero, ((0, 0), (0, -height % rows), (0, -width % columns)), constant_values=True)
    tiles = padded.reshape(channels, padded.shape[1] // rows, rows, padded.shape[2] // columns, columns)
    return tiles.all(axis=(2, 4))


def dead_runs(zero, length):
    """Which runs of each channel are zero everywhere. As in ir/activation_zeros.h a channel's plane is cut into runs of
    one length, which go on from a row to the next; the last one may be shorter."""
    return dead_tiles(zero.reshape(len(zero), 1, -1), 1, length)[:, 0]


def stretches(zero):
    """The length of each stretch of zeros, which begins and ends where zeros do along a row."""
    steps = np.diff(np.pad(zero, ((0, 0), (0, 0), (1, 1))).astype(np.int8).ravel())
    return np.flatnonzero(steps == -1) - np.flatnonzero(steps == 1)


def places(zero):
    """The columns of GROUPS, as shares, and the mean stretch of a map of zeros (channels, rows, columns)."""
    lengths, of_channels = stretches(zero), zero.mean(axis=(1, 2))
    zeros = max(1, int(lengths.sum()))
    shares = [dead_tiles(zero, side, side).mean() for side in TILES]
    shares += [dead_runs(zero, length).mean() for length in LENGTHS]
    shares += [lengths[lengths >= length].sum() / zeros for length in LENGTHS]
    shares += [zero.all(axis=(1, 2)).mean(), *np.quantile(of_channels, QUANTILES)]
    found = dict(zip(itertools.chain(*GROUPS.values()), map(float, shares)))
    return {**found, STRETCH: float(lengths.mean()) if len(lengths) else 0.0}


def mean_of(rows):
    """Of dictionaries with the same keys."""
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def distance(one, other, scale=float):
    """Between two results of `places`: of the differences of all columns the root of the mean square."""
    squares = [np.mean([(scale(one[column]) - scale(other[column])) ** 2 for column in columns])
               for columns in GROUPS.values()]
    return math.sqrt(np.mean(squares))


def logarithm(share):
    """For `distance`: small shares count as much as large ones, down to 1 %."""
    return math.log(share + 0.01)


class Pattern(typing.NamedTuple):
    """A kind of synthetic_zeros.h with its constants, of which each kind reads its own."""
    kind: str
    radius: int = 2  # of blobs: places that share noise with their neighbours
    spread: float = 1  # of blobs: that of the channels' means, in deviations of the noise
    of_dead: float = 0.5  # of channels: the share of the zeros that are those of dead channels

    def __str__(self):
        constants = {"blobs": f" {self.radius}, {self.spread:g}", "channels": f" {self.of_dead:g}"}
        return self.kind + constants.get(self.kind, "")


BURINS = tuple(Pattern(kind) for kind in ("random", "channels", "blobs", "dead"))
PATTERNS = (
    Pattern("random"), Pattern("dead"),
    *(Pattern("channels", of_dead=tenths / 10) for tenths in range(1, 10)),
    *(Pattern("blobs", radius=radius, spread=spread) for radius in (0, 1, 2, 3, 4, 6, 8)
      for spread in (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3) if radius or spread),  # with neither they are random
)


def random_tensor(elements, seed):
    """That of compiler/reference.cpp: of splitmix64 the upper 24 bits choose an odd multiple of 2^-24."""
    z = np.arange(1, elements + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    draws = ((z ^ (z >> np.uint64(31))) >> np.uint64(40)).astype(np.int32)
    return (2 * draws + 1 - (1 << 24)).astype(np.float32) * np.float32(2.0 ** -24)


@functools.lru_cache(maxsize=IMAGES)
def box_sums(shape, radius, seed):
    """Noise that neighbours share. It is summed in the order of the C++, on which sums of floats depend."""
    channels, rows, columns = shape
    side = 2 * radius + 1
    wide = (channels, rows + side - 1, columns + side - 1)
    noise = random_tensor(math.prod(wide), seed).reshape(wide)
    total = np.zeros(shape, np.float32)
    for row, column in np.ndindex(side, side):
        total += noise[:, row:row + rows, column:column + columns]
    return total / np.float32(side)


def scores_of(pattern, share, shape, seed):
    """The values of an image in the order in which they become zero: the smallest first."""
    if pattern.kind == "blobs":
        shifts = random_tensor(shape[0], seed + 1)[:, None, None]
        return box_sums(shape, pattern.radius, seed) + np.float32(pattern.spread) * shifts
    scores = random_tensor(math.prod(shape), seed).reshape(shape)
    if pattern.kind != "random":
        of_dead = pattern.of_dead if pattern.kind == "channels" else 1
        order = np.argsort(random_tensor(shape[0], seed + 1))
        scores[order[:int(of_dead * share * shape[0])]] -= 2  # below all others
    return scores


def set_zeros(pattern, share, shape, images=1, seed=1):
    """Which values of each image (channels, rows, columns) become zero."""
    count = math.floor(share * math.prod(shape) + 0.5)
    draws = 1 if pattern.kind == "random" else 2  # of an image, each with a seed of its own
    made = []
    for image in range(images):
        scores = scores_of(pattern, share, shape, seed * 1_000_003 + 1 + image * draws).ravel()
        zero = np.zeros(scores.size, bool)
        if count:
            last = np.partition(scores, count - 1)[count - 1]
            zero = scores < last
            zero[np.flatnonzero(scores == last)[:count - int(zero.sum())]] = True  # of equal ones the first
        made.append(zero.reshape(shape))
    return made


def distances(recorded, share, shape, patterns=PATTERNS):
    """For each pattern how far what it makes of this share of zeros is from what was recorded: in shares; by logarithm."""
    found = {}
    for pattern in patterns:
        made = mean_of([places(zero) for zero in set_zeros(pattern, share, tuple(shape), IMAGES)])
        found[pattern] = distance(made, recorded), distance(made, recorded, logarithm)
    return found


def nearest(found):
    return min(found, key=lambda pattern: found[pattern][0])
