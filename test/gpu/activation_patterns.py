"""Zeros of feature maps: statistics of them, and seeded synthetic patterns. Arrays are (channels, height, width).

A pattern is True where the feature map is zero. All of them have round(share * size) zeros.
"""
import numpy as np


def dead_channels(zero):
    """The share of channels that are zero everywhere."""
    return float(zero.all(axis=(1, 2)).mean())


def dead_tiles(zero, side):
    """The share of tiles of one channel, side x side, that are zero everywhere; tiles cut by the border count."""
    channels, height, width = zero.shape
    padded = np.pad(zero, ((0, 0), (0, -height % side), (0, -width % side)), constant_values=True)
    tiles = padded.reshape(channels, padded.shape[1] // side, side, padded.shape[2] // side, side)
    return float(tiles.all(axis=(2, 4)).mean())


def mean_run(zero):
    """The mean length of runs of zeros along rows, in elements; 0 where there is no zero."""
    starts = zero.copy()
    starts[..., 1:] &= ~zero[..., :-1]
    return float(zero.sum() / max(1, starts.sum()))


def smallest(score, share):
    """True at the round(share * size) smallest scores."""
    zero = np.zeros(score.size, bool)
    zero[np.argsort(score, axis=None, kind="stable")[:round(share * score.size)]] = True
    return zero.reshape(score.shape)


def random(shape, share, seed):
    return smallest(np.random.default_rng(seed).random(shape), share)


def channels(shape, share, seed, dead=0.5):
    """Dead channels hold at most the share `dead` of the zeros, the others are random."""
    generator = np.random.default_rng(seed)
    score = generator.random(shape)
    score[generator.permutation(shape[0])[:int(dead * share * shape[0])]] -= 1
    return smallest(score, share)


def blobs(shape, share, seed, radius=2, spread=1.0):
    """Noise under a box filter, in deviations, plus a shift of each channel; what is smallest is zero."""
    generator = np.random.default_rng(seed)
    side = 2 * radius + 1
    noise = generator.standard_normal((shape[0], shape[1] + side - 1, shape[2] + side - 1))
    boxes = np.lib.stride_tricks.sliding_window_view(noise, (side, side), axis=(1, 2))
    return smallest(boxes.mean(axis=(3, 4)) * side + spread * generator.standard_normal((shape[0], 1, 1)), share)


PATTERNS = {"random": random, "channels": channels, "blobs": blobs}
