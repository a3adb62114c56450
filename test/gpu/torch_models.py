"""Networks for pixels and boxes as torch modules, at full size: what networks.py takes as `own:NAME`.

U-Net in four ways to upsample, networks like YOLOv5s and YOLOv8s with their heads for 80 classes, and torchvision's SSD-Lite
with its heads. Boxes are decoded as the published networks do when they are exported; what chooses among them is left out.
"""
import torch
from torch import nn

CLASSES = 80
IMAGES = {"unet_nearest": 256, "unet_bilinear": 256, "unet_transposed": 256, "unet_shuffled": 256, "yolo_v5s": 640,
          "yolo_v8s": 640, "ssd_lite": 320}


# --- U-Net ------------------------------------------------------------------------------------------------------------

def _twice(inputs, outputs):
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


# What doubles rows and columns and halves the channels.
UPSAMPLING = {
    "nearest": lambda channels: nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"),
                                              nn.Conv2d(channels, channels // 2, 3, padding=1)),
    "bilinear": lambda channels: nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
                                               nn.Conv2d(channels, channels // 2, 1)),
    "transposed": lambda channels: nn.ConvTranspose2d(channels, channels // 2, 2, stride=2),
    "shuffled": lambda channels: nn.Sequential(nn.Conv2d(channels, 2 * channels, 1), nn.PixelShuffle(2)),
}


class UNet(nn.Module):
    def __init__(self, up, widths=(64, 128, 256, 512, 1024), classes=2):
        super().__init__()
        self.down = nn.ModuleList(_twice(inputs, outputs) for inputs, outputs in zip((3, *widths), widths))
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(UPSAMPLING[up](width) for width in widths[:0:-1])
        self.merge = nn.ModuleList(_twice(width, width // 2) for width in widths[:0:-1])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(self.pool(x) if skips else x)
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


# --- YOLO -------------------------------------------------------------------------------------------------------------

class ConvNorm(nn.Module):
    def __init__(self, inputs, outputs, kernel=1, stride=1, pad=None):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2 if pad is None else pad, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3)
        self.act = nn.SiLU(inplace=True)

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    def __init__(self, channels, kernels, shortcut):
        super().__init__()
        self.cv1 = ConvNorm(channels, channels, kernels[0])
        self.cv2 = ConvNorm(channels, channels, kernels[1])
        self.shortcut = shortcut

    def forward(self, x):
        made = self.cv2(self.cv1(x))
        return x + made if self.shortcut else made


class C3(nn.Module):
    """YOLOv5's block: half of the channels go through the bottlenecks, half around them."""

    def __init__(self, inputs, outputs, count=1, shortcut=True):
        super().__init__()
        half = outputs // 2
        self.cv1, self.cv2, self.cv3 = ConvNorm(inputs, half), ConvNorm(inputs, half), ConvNorm(2 * half, outputs)
        self.m = nn.Sequential(*(Bottleneck(half, (1, 3), shortcut) for _ in range(count)))

    def forward(self, x):
        return self.cv3(torch.cat([self.m(self.cv1(x)), self.cv2(x)], 1))


class C2f(nn.Module):
    """YOLOv8's: what each bottleneck makes is read by the last convolution."""

    def __init__(self, inputs, outputs, count=1, shortcut=False):
        super().__init__()
        self.half = outputs // 2
        self.cv1, self.cv2 = ConvNorm(inputs, outputs), ConvNorm((2 + count) * self.half, outputs)
        self.m = nn.ModuleList(Bottleneck(self.half, (3, 3), shortcut) for _ in range(count))

    def forward(self, x):
        first, last = self.cv1(x).chunk(2, 1)
        parts = [first, last]
        for block in self.m:
            parts.append(block(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class Sppf(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.cv1, self.cv2 = ConvNorm(channels, channels // 2), ConvNorm(2 * channels, channels)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        x = self.cv1(x)
        once = self.pool(x)
        twice = self.pool(once)
        return self.cv2(torch.cat([x, once, twice, self.pool(twice)], 1))


def _grid(cells):
    """The column and the row of each cell."""
    rows, cols = torch.meshgrid(torch.arange(float(cells)), torch.arange(float(cells)), indexing="ij")
    return torch.stack([cols, rows], 2)


class Detect5(nn.Module):
    """YOLOv5's head: a sigmoid of everything, boxes by anchors."""
    ANCHORS = ((10, 13, 16, 30, 33, 23), (30, 61, 62, 45, 59, 119), (116, 90, 156, 198, 373, 326))

    def __init__(self, channels, image):
        super().__init__()
        self.values, self.strides = CLASSES + 5, (8, 16, 32)
        self.m = nn.ModuleList(nn.Conv2d(count, 3 * self.values, 1) for count in channels)
        for index, (stride, anchors) in enumerate(zip(self.strides, self.ANCHORS)):
            self.register_buffer(f"grid{index}", _grid(image // stride) - 0.5)
            self.register_buffer(f"anchors{index}", torch.tensor(anchors, dtype=torch.float32).view(3, 1, 1, 2))

    def forward(self, features):
        found = []
        for index, (conv, stride) in enumerate(zip(self.m, self.strides)):
            x = conv(features[index])
            batch, _, rows, cols = x.shape
            x = x.view(batch, 3, self.values, rows, cols).permute(0, 1, 3, 4, 2).contiguous()
            centre, size, scores = x.sigmoid().split((2, 2, self.values - 4), 4)
            centre = (centre * 2 + getattr(self, f"grid{index}")) * stride
            size = (size * 2) ** 2 * getattr(self, f"anchors{index}")
            found.append(torch.cat([centre, size, scores], 4).view(batch, 3 * rows * cols, self.values))
        return torch.cat(found, 1)


class Detect8(nn.Module):
    """YOLOv8's head: boxes and classes have convolutions of their own; a side of a box is the mean of a distribution."""
    BINS = 16

    def __init__(self, channels, image):
        super().__init__()
        box, classes = max(16, channels[0] // 4, 4 * self.BINS), max(channels[0], min(CLASSES, 100))
        self.cv2 = nn.ModuleList(nn.Sequential(ConvNorm(count, box, 3), ConvNorm(box, box, 3),
                                               nn.Conv2d(box, 4 * self.BINS, 1)) for count in channels)
        self.cv3 = nn.ModuleList(nn.Sequential(ConvNorm(count, classes, 3), ConvNorm(classes, classes, 3),
                                               nn.Conv2d(classes, CLASSES, 1)) for count in channels)
        self.dfl = nn.Conv2d(self.BINS, 1, 1, bias=False).requires_grad_(False)
        self.dfl.weight.data[:] = torch.arange(float(self.BINS)).view(1, self.BINS, 1, 1)
        places = [_grid(image // stride).view(-1, 2) + 0.5 for stride in (8, 16, 32)]
        self.register_buffer("places", torch.cat(places).t().contiguous().unsqueeze(0))
        strides = [torch.full((1, len(one)), float(stride)) for one, stride in zip(places, (8, 16, 32))]
        self.register_buffer("strides", torch.cat(strides, 1))

    def forward(self, features):
        flat = []
        for index, (box, classes) in enumerate(zip(self.cv2, self.cv3)):
            x = torch.cat([box(features[index]), classes(features[index])], 1)
            flat.append(x.view(x.shape[0], 4 * self.BINS + CLASSES, -1))
        boxes, scores = torch.cat(flat, 2).split((4 * self.BINS, CLASSES), 1)
        batch, _, count = boxes.shape
        shares = boxes.view(batch, 4, self.BINS, count).transpose(2, 1).softmax(1)
        near, far = self.dfl(shares).view(batch, 4, count).chunk(2, 1)
        first, last = self.places - near, self.places + far
        return torch.cat([torch.cat([(first + last) / 2, last - first], 1) * self.strides, scores.sigmoid()], 1)


class Yolo(nn.Module):
    """Three levels of a backbone, merged downwards and upwards again, and a head."""

    def __init__(self, backbone, merge, head):
        super().__init__()
        self.backbone, self.merge, self.head = nn.ModuleList(backbone), nn.ModuleList(merge), head
        self.up = nn.Upsample(scale_factor=2, mode="nearest")

    def forward(self, x):
        low = self.backbone[0](x)
        middle = self.backbone[1](low)
        high = self.backbone[2](middle)
        across = self.merge[0](torch.cat([self.up(high), middle], 1))
        first = self.merge[1](torch.cat([self.up(across), low], 1))
        second = self.merge[3](torch.cat([self.merge[2](first), across], 1))
        third = self.merge[5](torch.cat([self.merge[4](second), high], 1))
        return self.head([first, second, third])


class Yolo5(Yolo):
    def __init__(self, image):
        backbone = [nn.Sequential(ConvNorm(3, 32, 6, 2, 2), ConvNorm(32, 64, 3, 2), C3(64, 64), ConvNorm(64, 128, 3, 2),
                                  C3(128, 128, 2)),
                    nn.Sequential(ConvNorm(128, 256, 3, 2), C3(256, 256, 3)),
                    nn.Sequential(ConvNorm(256, 512, 3, 2), C3(512, 512), Sppf(512), ConvNorm(512, 256))]
        merge = [nn.Sequential(C3(512, 256, shortcut=False), ConvNorm(256, 128)), C3(256, 128, shortcut=False),
                 ConvNorm(128, 128, 3, 2), C3(256, 256, shortcut=False), ConvNorm(256, 256, 3, 2),
                 C3(512, 512, shortcut=False)]
        super().__init__(backbone, merge, Detect5((128, 256, 512), image))


class Yolo8(Yolo):
    def __init__(self, image):
        backbone = [nn.Sequential(ConvNorm(3, 32, 3, 2), ConvNorm(32, 64, 3, 2), C2f(64, 64, 1, True),
                                  ConvNorm(64, 128, 3, 2), C2f(128, 128, 2, True)),
                    nn.Sequential(ConvNorm(128, 256, 3, 2), C2f(256, 256, 2, True)),
                    nn.Sequential(ConvNorm(256, 512, 3, 2), C2f(512, 512, 1, True), Sppf(512))]
        merge = [C2f(768, 256), C2f(384, 128), ConvNorm(128, 128, 3, 2), C2f(384, 256), ConvNorm(256, 256, 3, 2),
                 C2f(768, 512)]
        super().__init__(backbone, merge, Detect8((128, 256, 512), image))


# --- SSD-Lite ---------------------------------------------------------------------------------------------------------

class SsdLite(nn.Module):
    """torchvision's: six levels of MobileNetV3, and for each anchor a box and the shares of 91 classes."""

    def __init__(self):
        super().__init__()
        from torchvision.models import detection
        whole = detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
        self.backbone, self.head = whole.backbone, whole.head

    def forward(self, x):
        found = self.head(list(self.backbone(x).values()))
        return {"boxes": found["bbox_regression"], "scores": found["cls_logits"].softmax(-1)}


def build(name, image):
    if name.startswith("unet_"):
        return UNet(name.removeprefix("unet_"))
    return {"yolo_v5s": lambda: Yolo5(image), "yolo_v8s": lambda: Yolo8(image), "ssd_lite": SsdLite}[name]()
