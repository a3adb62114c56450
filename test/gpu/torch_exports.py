"""Networks of torchvision, of timm and of torch_models.py, pruned and exported to ONNX as a user would: what networks.py
takes as `torchvision:NAME`, `timm:NAME` or `own:NAME`.

Weights are those that the library begins with, seeded; of each convolution and linear layer but depthwise ones, those that
read an image and those that are no parameters, the smallest are zeroed. Batch normalization then learns its statistics from
random images, so that activations have the size that they have in trained networks.
"""
import torch

import torch_models

STATISTICS_BATCH = 16
IMAGE_CHANNELS = 3
OPSET = 17

# Rows and columns that torchvision evaluates a network with.
USUAL_IMAGE, SEGMENTED_IMAGE = 224, 520
IMAGES = {"inception_v3": 299, **torch_models.IMAGES}


def image_size(source):
    """The size that a network is made for."""
    library, _, name = source.partition(":")
    if library == "torchvision":
        import torchvision
        if hasattr(torchvision.models.segmentation, name):
            return SEGMENTED_IMAGE
    return IMAGES.get(name, USUAL_IMAGE)


def _built(source, image):
    library, _, name = source.partition(":")
    if library == "own":
        return torch_models.build(name, image)
    if library == "timm":
        import timm
        return timm.create_model(name, pretrained=False)
    import torchvision
    extra = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        extra |= {"init_weights": True, "aux_logits": False}
    if hasattr(torchvision.models.segmentation, name):
        extra["weights_backbone"] = None
    return torchvision.models.get_model(name, **extra)


def _prune(network, sparsity):
    for layer in network.modules():
        if not isinstance(layer, (torch.nn.Conv2d, torch.nn.ConvTranspose2d, torch.nn.Linear)):
            continue
        if getattr(layer, "groups", 1) > 1 or layer.weight.shape[1] == IMAGE_CHANNELS or not layer.weight.requires_grad:
            continue
        sizes = layer.weight.detach().abs().flatten()
        limit = sizes.kthvalue(max(1, int(sparsity * sizes.numel()))).values
        layer.weight.data[layer.weight.abs() <= limit] = 0


class ExportedNetwork(torch.nn.Module):
    """The library's own network; it returns a tuple, and batch normalizations are folded where torch.fx can."""

    def __init__(self, source, sparsity, image, weights):
        """`weights`: the file that has them, or is to have them: statistics differ a little from run to run."""
        super().__init__()
        torch.manual_seed(1)
        self.image = image or image_size(source)
        network = _built(source, self.image)
        if weights.exists():
            network.load_state_dict(torch.load(weights))
            self.network = network
            self.eval()
            return
        _prune(network, sparsity)
        network.eval()  # nothing is dropped
        for layer in network.modules():
            if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
                layer.momentum = None  # the mean of all batches
                layer.train()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        with torch.no_grad():
            network.to(device)(torch.randn(STATISTICS_BATCH, IMAGE_CHANNELS, self.image, self.image, device=device))
        self.network = network.cpu()
        self.eval()
        torch.save(self.network.state_dict(), weights)

    def forward(self, *images):
        result = self.network(*images)
        return tuple(result.values()) if isinstance(result, dict) else (result,)

    def export(self, path):
        images = torch.randn(1, IMAGE_CHANNELS, self.image, self.image)
        with torch.no_grad():
            names = [f"output{index}" for index in range(len(self(images)))]
            dynamic = {name: {0: "N"} for name in ["input", *names]}
            torch.onnx.export(self, (images,), str(path), input_names=["input"], output_names=names,
                              dynamic_axes=dynamic, opset_version=OPSET, dynamo=False)

    def folded(self):
        """Itself, with batch normalizations folded into convolutions where torch.fx can trace it."""
        from torch.fx.experimental.optimization import fuse
        try:
            self.network = fuse(self.network)
        except Exception as error:  # whatever torch.fx throws
            print(f"batch normalization stays: {str(error).splitlines()[0]}")
        return self

    def fuse(self):
        return 0

    def fused(self):
        return 0
