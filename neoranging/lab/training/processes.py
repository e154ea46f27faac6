"""Processes that train one network together, as ``torchrun`` starts them.

Every process has all the data and the whole network, and takes its part of each batch. A loss is a
mean over the batch: weighted by its share of the batch and summed over the processes, the gradients
of the parts are that of the whole. A term that compares distributions is no such mean, so what it
compares is gathered first. All processes hence step alike, and only the first of them writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from neoranging.exceptions import NeoRangingError, TrainingError

Value = TypeVar("Value")


class Processes:
    """The processes of one training, seen from one of them.

    Parameters
    ----------
    number, count : int
        Number of this process, from 0 on, and of all; one alone by default.
    """

    def __init__(self, number: int = 0, count: int = 1) -> None:
        self.number, self.count = number, count

    @property
    def is_first(self) -> bool:
        """True in the process that writes."""
        return self.number == 0

    def require_batch(self, size: int) -> int:
        """Size of a batch of which every process gets a part.

        Raises
        ------
        TrainingError
            If the processes outnumber the arcs.
        """
        if size < self.count:
            raise TrainingError(
                f"a batch of {size} arcs cannot be divided among {self.count} processes: start "
                "fewer, or take a larger batch"
            )
        return size

    def part(self, batch: Tensor) -> Tensor:
        """Rows of a batch that this process takes."""
        return batch[self.number :: self.count]

    def gathered(self, part: Tensor) -> Tensor:
        """Rows of all processes, of which this one's carry their gradient; in another order."""
        return part if self.count == 1 else _Gathered.apply(part, self)

    def summed(
        self, network: torch.nn.Module, terms: dict[str, Tensor], share: float
    ) -> dict[str, Tensor]:
        """Terms of the loss on the whole batch; the gradients become those of the whole batch.

        Parameters
        ----------
        network : Module
            Its gradients are those of the part.
        terms : dict of Tensor
            Terms of the loss on the part.
        share : float
            Share of the batch that the part is.
        """
        if self.count == 1:
            return terms
        gradients = [p.grad for p in network.parameters() if p.grad is not None]
        columns = [*gradients, *terms.values()]
        joined = torch.cat([x.detach().reshape(-1).double() for x in columns]) * share
        with _company():
            distributed.all_reduce(joined)
        values = iter(joined.split([x.numel() for x in columns]))
        for gradient in gradients:
            gradient.copy_(next(values).view_as(gradient))
        return {name: next(values).view_as(x).to(x.dtype) for name, x in terms.items()}

    def shared(self, make: Callable[[], Value]) -> Value:
        """Plain data that the first process makes, in all of them; its error, too."""
        if self.count == 1:
            return make()
        message: list[Any] = [None, None]
        if self.is_first:
            try:
                message[0] = make()
            except NeoRangingError as error:
                message[1] = error
        with _company():
            distributed.broadcast_object_list(message, src=0)
        if message[1] is not None:
            raise message[1]
        value: Value = message[0]
        return value


class _Gathered(torch.autograd.Function):
    """Parts of all processes, one after the other."""

    @staticmethod
    def forward(context: Any, part: Tensor, processes: Processes) -> Tensor:
        counts = torch.zeros(processes.count, dtype=torch.int64, device=part.device)
        counts[processes.number] = len(part)
        with _company():
            distributed.all_reduce(counts)
            sizes = counts.tolist()
            # the parts of a batch differ by one row at most, and are sent in one length
            padded = part.new_zeros(max(sizes), *part.shape[1:])
            padded[: len(part)] = part
            parts = [torch.empty_like(padded) for _ in sizes]
            distributed.all_gather(parts, padded)
        context.first = sum(sizes[: processes.number])
        context.n, context.total = len(part), sum(sizes)
        return torch.cat([x[:n] for x, n in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        # the sum over the processes weighs gradients by the share of the part: not so this one,
        # which is that of a loss on the whole batch
        part = gradient[context.first : context.first + context.n]
        return part * (context.total / context.n), None


def pick_device(name: str = "auto") -> torch.device:
    """Device of a name; with ``"auto"`` the first available one of cuda, mps, cpu.

    Of the processes of a machine that ``torchrun`` started each gets a GPU of its own.

    Raises
    ------
    TrainingError
        If there is no such device here.
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available() and not is_one_of_several(),
        "cpu": True,
    }
    if name == "auto":
        name = next(kind for kind, present in available.items() if present)
    try:
        device = torch.device(name)
    except RuntimeError:
        raise TrainingError(f"no device {name!r}: choose auto, cuda, mps or cpu") from None
    if not available.get(device.type, False):
        where = "for several processes" if device.type == "mps" else "on this machine"
        raise TrainingError(f"there is no device {name!r} {where}; choose auto or cpu")
    if device.type == "cuda" and is_one_of_several():
        place, there = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if place >= there:
            raise TrainingError(
                f"process {place + 1} of this machine has no GPU, there are {there}: start "
                f"{there} with --nproc-per-node, or choose the device cpu"
            )
        device = torch.device("cuda", place)
    return device


def is_one_of_several() -> bool:
    """True in a process that ``torchrun`` started together with others."""
    return distributed.is_torchelastic_launched() and int(os.environ["WORLD_SIZE"]) > 1


def is_first() -> bool:
    """True in the process that writes and speaks for all, and in one alone."""
    return not is_one_of_several() or os.environ["RANK"] == "0"


@contextmanager
def joined(device: torch.device) -> Iterator[Processes]:
    """The processes that ``torchrun`` started together with this one, in touch; else this alone.

    Parameters
    ----------
    device : torch.device
        Device of this process: GPUs talk by NCCL, CPUs by Gloo.

    Raises
    ------
    TrainingError
        If the others cannot be reached.
    """
    if not is_one_of_several():
        yield Processes()
        return
    began = not distributed.is_initialized()  # else a program of the user's has set it up
    if began:
        with _company():
            if device.type == "cuda":
                torch.cuda.set_device(device)
                distributed.init_process_group("nccl", device_id=device)
            else:
                distributed.init_process_group("gloo")
    yield Processes(distributed.get_rank(), distributed.get_world_size())
    if began:  # after an error the process ends, and the others notice
        distributed.destroy_process_group()


@contextmanager
def _company() -> Iterator[None]:
    """Context of an exchange with the other processes, which may be gone."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            f"process {os.environ['RANK']} of {os.environ['WORLD_SIZE']} has lost the others: look "
            f"for what one of them said before it ended ({str(error).splitlines()[0]})"
        ) from error
