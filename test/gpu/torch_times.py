"""What PyTorch needs for a network on a GPU: a CUDA graph of one run, timed by events as `burin bench` times its own.

- latency: one launch of the graph on a device that has nothing to do, from an event before it to one behind it. This
  contains what the host needs to launch, which takes Python a little longer than burin.
- back to back: launches that were all enqueued at once, from one's end to the next one's. Here the host has no share.
"""
import statistics
from dataclasses import dataclass

import torch

from torch_layers import FusedConvolution

DEVICE = "cuda"
WARMUP_RUNS = 3  # before capture: in the first, cuDNN tries its algorithms
WARMUP_LAUNCHES = 5
LEAST_SAMPLES = 10

# What weights and images are, and whether float32 may be rounded to TF32 for the tensor cores.
PRECISIONS = {"fp32": (torch.float32, False), "tf32": (torch.float32, True), "fp16": (torch.float16, True)}
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def versions():
    return {"device": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": str(torch.backends.cudnn.version())}


def set_up(network, precision, layout, benchmark=True):
    """Brings a network on the GPU into a precision and a layout; images of it come from place(). Without `benchmark`
    cuDNN's heuristics choose the algorithms."""
    dtype, allow_tf32 = PRECISIONS[precision]
    torch.backends.cudnn.benchmark = benchmark
    torch.backends.cudnn.allow_tf32 = allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allow_tf32
    network.to(device=DEVICE, dtype=dtype).to(memory_format=LAYOUTS[layout])
    for layer in network.modules():
        if isinstance(layer, FusedConvolution):
            layer.fused = True  # cuDNN may have refused another shape or layout


def place(images, precision, layout):
    placed = [torch.from_numpy(image).to(device=DEVICE, dtype=PRECISIONS[precision][0]) for image in images]
    return [image.contiguous(memory_format=LAYOUTS[layout]) if image.dim() == 4 else image for image in placed]


class EagerRun:
    """Runs of a network on these images, each launched by Python anew."""

    def __init__(self, network, images):
        self._network, self._images = network, images
        self._stream = torch.cuda.Stream()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(self._stream):
            for _ in range(WARMUP_RUNS):
                self._outputs = network(*images)
        self._stream.synchronize()

    def _launch(self):
        with torch.no_grad():
            self._outputs = self._network(*self._images)

    def outputs(self):
        """As float32 arrays."""
        with torch.cuda.stream(self._stream):
            self._launch()
        torch.cuda.synchronize()
        return [output.float().cpu().contiguous().numpy() for output in self._outputs]

    def _latency(self):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        self._launch()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3

    def _in_a_row(self, launches):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(launches + 1)]
        events[0].record()
        for event in events[1:]:
            self._launch()
            event.record()
        events[-1].synchronize()
        return [begin.elapsed_time(end) * 1e3 for begin, end in zip(events, events[1:])]

    def times(self, samples, seconds):
        """Of as many samples of each figure, or of fewer where they would take more than so many seconds."""
        with torch.cuda.stream(self._stream):
            one = min(self._latency() for _ in range(WARMUP_LAUNCHES))
            samples = min(samples, max(LEAST_SAMPLES, int(seconds * 1e6 / one)))
            return {"latency": summary([self._latency() for _ in range(samples)]),
                    "back_to_back": summary(self._in_a_row(samples))}


class CapturedRun(EagerRun):
    """One run of a network on these images, as a CUDA graph, which reads them where they are."""

    def __init__(self, network, images):
        super().__init__(network, images)
        self._graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self._graph, stream=self._stream):
            self._outputs = network(*images)

    def _launch(self):
        self._graph.replay()


def summary(samples):
    """In microseconds, named as in burin's JSON."""
    tenths = statistics.quantiles(samples, n=10, method="inclusive")
    return {"median_us": statistics.median(samples), "p10_us": tenths[0], "p90_us": tenths[-1], "min_us": min(samples),
            "samples": len(samples)}


@dataclass
class Variant:
    """One way in which PyTorch can run a network."""
    form: str  # plain, fused, compiled
    layout: str
    precision: str
    benchmark: bool = True  # cuDNN's algorithms by measurement, not by its heuristics
    graph: bool = True  # a CUDA graph, and not launches of Python's


def compiled(network):
    """torch.compile's form for the very sizes and types that come next.

    What was compiled before is forgotten: after eight forms of the same function torch.compile would run it as it is, and
    say no more than a warning.
    """
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    return torch.compile(network, dynamic=False)


def check_compiled():
    """torch.compile makes nothing of what it cannot trace, and runs it as it is, without a word."""
    if torch._dynamo.utils.counters["stats"]["unique_graphs"] == 0:
        raise RuntimeError("torch.compile traced no part of the network")


def measure(network, variant, images, samples, seconds):
    """Times, outputs and how many convolutions are fused, of a network in the variant's form."""
    set_up(network, variant.precision, variant.layout, variant.benchmark)
    runnable = compiled(network) if variant.form == "compiled" else network
    run = (CapturedRun if variant.graph else EagerRun)(runnable, place(images, variant.precision, variant.layout))
    if variant.form == "compiled":
        check_compiled()
    return {**run.times(samples, seconds), "fused_convolutions": network.fused()}, run.outputs()
