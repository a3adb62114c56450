"""The networks of the zoo as tables: one row for each operator, one line for each layer.

A row names what the operator adds to what stands before it; sizes of inputs follow from the rows before. `Branches`
holds rows that all read the same tensor, and says how their results become one. Channel counts are those of the papers;
a model written with a smaller width, image or number of classes follows from the same rows (graph.py).
"""
from dataclasses import dataclass

DEPTHWISE = -1  # Conv.groups: as many as there are channels


@dataclass(frozen=True)
class Conv:
    name: str
    outputs: int
    kernel: int
    stride: int = 1
    pad: int = 0
    groups: int = 1
    relu: bool = True
    batch_norm: bool = False  # then the convolution has no bias of its own
    gamma: float = 1.0  # of the batch normalization: what its factors are scattered about
    classes: bool = False  # the outputs are the network's classes


@dataclass(frozen=True)
class FullyConnected:
    name: str
    outputs: int
    relu: bool = True
    classes: bool = False


@dataclass(frozen=True)
class MaxPool:
    kernel: int
    stride: int
    pad: int = 0
    ceil: bool = False  # Caffe rounds the output's size up


@dataclass(frozen=True)
class GlobalAveragePool:
    pass


@dataclass(frozen=True)
class Lrn:
    size: int = 5
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0


@dataclass(frozen=True)
class Dropout:
    ratio: float


@dataclass(frozen=True)
class Flatten:
    pass


@dataclass(frozen=True)
class Softmax:
    pass


@dataclass(frozen=True)
class Branches:
    """Lists of rows, each applied to the same tensor; an empty one hands it on. `join` is "concat" or "add"."""
    name: str
    rows: tuple
    join: str
    relu: bool = False  # after the sum


@dataclass(frozen=True)
class Network:
    title: str
    image: int  # height and width of the paper's input
    reduced_image: int  # small, yet every layer still has several pixels or weights to work on
    channels: int
    input_std: float  # standard deviation of the inputs that it was made for; 58: pixels from 0 to 255 less their mean
    rows: tuple


def lenet5():
    """LeNet-5 as Caffe ships it and Han et al. prune it (lenet.prototxt): 20 and 50 filters, 431 thousand weights."""
    return Network("LeNet-5", 28, 28, 1, 1.0, (
        Conv("conv1", 20, 5, relu=False), MaxPool(2, 2),
        Conv("conv2", 50, 5, relu=False), MaxPool(2, 2),
        Flatten(), FullyConnected("fc1", 500), FullyConnected("fc2", 10, relu=False, classes=True), Softmax()))


def alexnet():
    """Krizhevsky et al. 2012 with its two groups, in the order of Caffe's bvlc_alexnet (normalize, then pool)."""
    pool = MaxPool(3, 2, ceil=True)
    return Network("AlexNet", 227, 67, 3, 58.0, (
        Conv("conv1", 96, 11, stride=4), Lrn(), pool,
        Conv("conv2", 256, 5, pad=2, groups=2), Lrn(), pool,
        Conv("conv3", 384, 3, pad=1),
        Conv("conv4", 384, 3, pad=1, groups=2),
        Conv("conv5", 256, 3, pad=1, groups=2), pool,
        Flatten(), FullyConnected("fc6", 4096), Dropout(0.5), FullyConnected("fc7", 4096), Dropout(0.5),
        FullyConnected("fc8", 1000, relu=False, classes=True), Softmax()))


def vgg19():
    """Simonyan and Zisserman 2014, configuration E."""
    rows = []
    for block, (layers, outputs) in enumerate([(2, 64), (2, 128), (4, 256), (4, 512), (4, 512)], 1):
        rows += [Conv(f"conv{block}_{layer}", outputs, 3, pad=1) for layer in range(1, layers + 1)]
        rows.append(MaxPool(2, 2))
    return Network("VGG-19", 224, 64, 3, 58.0, (
        *rows, Flatten(), FullyConnected("fc6", 4096), Dropout(0.5), FullyConnected("fc7", 4096), Dropout(0.5),
        FullyConnected("fc8", 1000, relu=False, classes=True), Softmax()))


# name: filters of 1x1, of 3x3 reduce and 3x3, of 5x5 reduce and 5x5, of the pool's projection
_INCEPTIONS = {
    "inception_3a": (64, 96, 128, 16, 32, 32),
    "inception_3b": (128, 128, 192, 32, 96, 64),
    "inception_4a": (192, 96, 208, 16, 48, 64),
    "inception_4b": (160, 112, 224, 24, 64, 64),
    "inception_4c": (128, 128, 256, 24, 64, 64),
    "inception_4d": (112, 144, 288, 32, 64, 64),
    "inception_4e": (256, 160, 320, 32, 128, 128),
    "inception_5a": (256, 160, 320, 32, 128, 128),
    "inception_5b": (384, 192, 384, 48, 128, 128),
}


def _inception(name):
    one, reduce3, three, reduce5, five, projection = _INCEPTIONS[name]
    return Branches(name, (
        (Conv(f"{name}.1x1", one, 1),),
        (Conv(f"{name}.3x3_reduce", reduce3, 1), Conv(f"{name}.3x3", three, 3, pad=1)),
        (Conv(f"{name}.5x5_reduce", reduce5, 1), Conv(f"{name}.5x5", five, 5, pad=2)),
        (MaxPool(3, 1, pad=1), Conv(f"{name}.pool_proj", projection, 1))), "concat")


def googlenet():
    """Szegedy et al. 2014 as Caffe's bvlc_googlenet, without the two auxiliary heads that only training needs."""
    pool = MaxPool(3, 2, ceil=True)
    stage = {number: [_inception(name) for name in _INCEPTIONS if name.startswith(f"inception_{number}")]
             for number in (3, 4, 5)}
    return Network("GoogLeNet", 224, 64, 3, 58.0, (
        Conv("conv1.7x7_s2", 64, 7, stride=2, pad=3), pool, Lrn(),
        Conv("conv2.3x3_reduce", 64, 1), Conv("conv2.3x3", 192, 3, pad=1), Lrn(), pool,
        *stage[3], pool, *stage[4], pool, *stage[5],
        GlobalAveragePool(), Dropout(0.4), Flatten(),
        FullyConnected("loss3.classifier", 1000, relu=False, classes=True), Softmax()))


def _fire(number, squeeze, expand):
    name = f"fire{number}"
    return (Conv(f"{name}.squeeze1x1", squeeze, 1),
            Branches(name, ((Conv(f"{name}.expand1x1", expand, 1),),
                            (Conv(f"{name}.expand3x3", expand, 3, pad=1),)), "concat"))


def squeezenet():
    """SqueezeNet 1.0 of Iandola et al. 2016; conv1 without padding and conv_final with it, as its authors have it."""
    pool = MaxPool(3, 2, ceil=True)
    return Network("SqueezeNet 1.0", 227, 67, 3, 58.0, (
        Conv("conv1", 96, 7, stride=2), pool,
        *_fire(2, 16, 64), *_fire(3, 16, 64), *_fire(4, 32, 128), pool,
        *_fire(5, 32, 128), *_fire(6, 48, 192), *_fire(7, 48, 192), *_fire(8, 64, 256), pool,
        *_fire(9, 64, 256), Dropout(0.5),
        Conv("conv_final", 1000, 1, pad=1, classes=True), GlobalAveragePool(), Flatten(), Softmax()))


def resnet50():
    """He et al. 2015 with the stride on the 3x3 layer of a bottleneck, as PyTorch and most later work have it."""
    rows = [Conv("conv1", 64, 7, stride=2, pad=3, batch_norm=True), MaxPool(3, 2, pad=1)]
    for stage, (blocks, inner) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 2):
        for block in range(blocks):
            name = f"res{stage}{chr(ord('a') + block)}"
            stride = 2 if stage > 2 and block == 0 else 1
            # The last factor of a branch is small, so that sixteen sums do not make the activations grow without end.
            main = (Conv(f"{name}.branch2a", inner, 1, batch_norm=True),
                    Conv(f"{name}.branch2b", inner, 3, stride=stride, pad=1, batch_norm=True),
                    Conv(f"{name}.branch2c", 4 * inner, 1, relu=False, batch_norm=True, gamma=0.4))
            shortcut = ()
            if block == 0:
                shortcut = (Conv(f"{name}.branch1", 4 * inner, 1, stride=stride, relu=False, batch_norm=True),)
            rows.append(Branches(name, (main, shortcut), "add", relu=True))
    return Network("ResNet-50", 224, 64, 3, 1.0, (
        *rows, GlobalAveragePool(), Flatten(), FullyConnected("fc", 1000, relu=False, classes=True)))


def mobilenet_v1():
    """Howard et al. 2017, width 1.0, with the paper's ReLU."""
    rows = [Conv("initial_conv", 32, 3, stride=2, pad=1, batch_norm=True)]
    outputs = [64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024]
    strides = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1]
    for index, (filters, stride) in enumerate(zip(outputs, strides)):
        rows += [Conv(f"depthwise_{index}", DEPTHWISE, 3, stride=stride, pad=1, groups=DEPTHWISE, batch_norm=True),
                 Conv(f"pointwise_{index}", filters, 1, batch_norm=True)]
    return Network("MobileNetV1", 224, 64, 3, 1.0, (
        *rows, GlobalAveragePool(), Flatten(), FullyConnected("classifier", 1000, relu=False, classes=True)))


NETWORKS = {make.__name__: make for make in (lenet5, alexnet, vgg19, googlenet, squeezenet, resnet50, mobilenet_v1)}


def weighted_rows(rows):
    """The convolutions and fully connected layers, in the order in which they are written."""
    for row in rows:
        if isinstance(row, Branches):
            for branch in row.rows:
                yield from weighted_rows(branch)
        elif isinstance(row, (Conv, FullyConnected)):
            yield row
