"""How sparse each layer of the zoo is: the figures that were published for it, and where.

Sources
  HAN15       Han, Pool, Tran, Dally: Learning both Weights and Connections for Efficient Neural Networks, NIPS 2015,
              arXiv 1506.02626: the tables of LeNet-5, AlexNet and VGG-16 (weights left, in per cent; the same figures
              stand in Deep Compression, ICLR 2016, arXiv 1510.00149). What they leave adds up to the abstract's totals
              within their rounding: 6.8 million weights of AlexNet (there 6.7), 10.5 of VGG-16 (there 10.3). The rows
              of the tables themselves were not compared with the paper, nor were the rules of RIGL and FASTSPARSE.
  SQUEEZE     The SqueezeNet of Iandola et al. 2016 (arXiv 1602.07360) after Deep Compression, as its authors released
              it (github.com/songhan/SqueezeNet-Deep-Compression); counted in that file and rounded to per cent.
  SKIMCAFFE   Park et al.: Faster CNNs with Direct Sparse Convolutions and Guided Pruning, ICLR 2017, arXiv 1608.01409;
              the sparsities of its GoogLeNet (68.7 % top-1) from the README of github.com/IntelLabs/SkimCaffe. It names
              the pruned layers alone: conv1 and the 1x1 convolutions are dense.
  RIGL        Evci et al.: Rigging the Lottery, ICML 2020, arXiv 1911.11134: ResNet-50 at 90 %, the distribution called
              uniform: every layer alike, the first one dense.
  FASTSPARSE  Elsen et al.: Fast Sparse ConvNets, CVPR 2020, arXiv 1911.09723: MobileNetV1 with 90 % of the pointwise
              layers' weights zero; first, depthwise and last layer dense.

VGG-19 has no table of its own. It takes VGG-16's by the names of the layers; the fourth layer of blocks 3 to 5, which
VGG-16 does not have, takes the figure of the third.
"""
from networks import Conv, DEPTHWISE

_UNIFORM = 0.9

# layer: share of the weights that is left
_LENET5 = {"conv1": 0.66, "conv2": 0.12, "fc1": 0.08, "fc2": 0.19}

_ALEXNET = {"conv1": 0.84, "conv2": 0.38, "conv3": 0.35, "conv4": 0.37, "conv5": 0.37,
            "fc6": 0.09, "fc7": 0.09, "fc8": 0.25}

_VGG19 = {"conv1_1": 0.58, "conv1_2": 0.22, "conv2_1": 0.34, "conv2_2": 0.36,
          "conv3_1": 0.53, "conv3_2": 0.24, "conv3_3": 0.42, "conv3_4": 0.42,
          "conv4_1": 0.32, "conv4_2": 0.27, "conv4_3": 0.34, "conv4_4": 0.34,
          "conv5_1": 0.35, "conv5_2": 0.29, "conv5_3": 0.36, "conv5_4": 0.36,
          "fc6": 0.04, "fc7": 0.04, "fc8": 0.23}

_SQUEEZENET = {"conv1": 1.0, "conv_final": 0.20,
               "fire2.squeeze1x1": 1.0, "fire2.expand1x1": 1.0, "fire2.expand3x3": 0.33,
               "fire3.squeeze1x1": 1.0, "fire3.expand1x1": 1.0, "fire3.expand3x3": 0.33,
               "fire4.squeeze1x1": 1.0, "fire4.expand1x1": 1.0, "fire4.expand3x3": 0.33,
               "fire5.squeeze1x1": 1.0, "fire5.expand1x1": 1.0, "fire5.expand3x3": 0.33,
               "fire6.squeeze1x1": 1.0, "fire6.expand1x1": 0.50, "fire6.expand3x3": 0.33,
               "fire7.squeeze1x1": 0.50, "fire7.expand1x1": 1.0, "fire7.expand3x3": 0.33,
               "fire8.squeeze1x1": 1.0, "fire8.expand1x1": 0.50, "fire8.expand3x3": 0.30,
               "fire9.squeeze1x1": 0.50, "fire9.expand1x1": 1.0, "fire9.expand3x3": 0.30}

# SkimCaffe gives zeros, in per cent.
_GOOGLENET = {name: 1.0 - zeros / 100.0 for name, zeros in {
    "conv2.3x3": 81.6533,
    "inception_3a.3x3": 90.0861, "inception_3a.5x5": 84.5625, "inception_3b.3x3": 90.4699, "inception_3b.5x5": 88.5482,
    "inception_4a.3x3": 87.968, "inception_4a.5x5": 83.7604, "inception_4b.3x3": 96.1057, "inception_4b.5x5": 87.3958,
    "inception_4c.3x3": 94.8968, "inception_4c.5x5": 88.0052, "inception_4d.3x3": 92.4134, "inception_4d.5x5": 90.3867,
    "inception_4e.3x3": 98.6999, "inception_4e.5x5": 94.416, "inception_5a.3x3": 96.2437, "inception_5a.5x5": 93.3984,
    "inception_5b.3x3": 94.9538, "inception_5b.5x5": 94.8717, "loss3.classifier": 90.6519}.items()}

_TABLES = {"lenet5": ("HAN15", _LENET5), "alexnet": ("HAN15", _ALEXNET),
           "vgg19": ("HAN15, VGG-16's figures by the names of the layers", _VGG19),
           "squeezenet": ("SQUEEZE", _SQUEEZENET), "googlenet": ("SKIMCAFFE", _GOOGLENET)}
_RULES = {"resnet50": "RIGL", "mobilenet_v1": "FASTSPARSE"}


def source(model):
    return _TABLES[model][0] if model in _TABLES else _RULES[model]


def _is_depthwise(row):
    return isinstance(row, Conv) and row.groups == DEPTHWISE


def published(model, row, first):
    """The share of zeros that was published for a layer; `first` says that it is the network's first one."""
    if model == "resnet50":
        return 0.0 if first else _UNIFORM
    if model == "mobilenet_v1":
        return 0.0 if first or _is_depthwise(row) or row.classes else _UNIFORM
    table = _TABLES[model][1]
    if model == "googlenet":  # dense where the table is silent
        return 1.0 - table.get(row.name, 1.0)
    return 1.0 - table[row.name]


def overridden(row, first, sparsity):
    """The same share of zeros everywhere, but in the first layer and the depthwise ones, whose nine weights for each
    channel would leave most channels dead: those are dense."""
    return 0.0 if first or _is_depthwise(row) else sparsity
