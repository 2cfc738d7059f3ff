"""Getting hold of weights: devices, seeds, fingerprints, and downloads that may not be had."""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from binding_lib.encoders.kinds import offline_choices

if TYPE_CHECKING:
    import torch

_PATIENCE_SECONDS = 5

T = TypeVar("T")


class WeightsUnavailableError(OSError):
    """Weights that were asked for could not be had; the message names what works offline."""

    def __init__(self, wanted: str, reason: object) -> None:
        cause = " ".join(str(reason).split())
        super().__init__(
            f"the weights of {wanted!r} could not be had: {cause.rstrip('.')}. "
            f"These need no network: {offline_choices()}"
        )


class MissingExtraError(ImportError):
    """An optional package is not installed; the message says how to install it."""


def require(module: str, extra: str) -> ModuleType:
    """Import a module that an optional extra of this package brings."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise MissingExtraError(
            f'this needs the package {module}; install it with: pip install "binding_lib[{extra}]"'
        ) from error


def resolve_device(device: str = "auto") -> torch.device:
    """Choose the device to compute on; "auto" takes CUDA, then Apple's MPS, then the processor.

    Raises
    ------
    ValueError
        If torch knows no such device, or this machine has none.
    """
    import torch

    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
        return torch.device(device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"cannot compute on device {device!r} ({reason}); expected auto, cpu, cuda or mps"
        ) from error


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Draw the initial weights of a model built (on the processor) in this block from `seed`.

    The global random state of torch is what it was before, afterwards.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would seed the generators of the accelerators, too.
        torch.random.default_generator.manual_seed(seed)
        yield


def fingerprint(model: torch.nn.Module, *settings: object) -> str:
    """Hash a model's weights, and the settings around them that change its output.

    Parameters
    ----------
    model : torch.nn.Module
    *settings : object
        Anything whose `repr` tells it apart: architecture, preprocessing, library version.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    import torch

    digest = hashlib.sha256(repr(settings).encode())
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the chatter of model libraries while they load; their errors still come through."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def fetch(wanted: str, build: Callable[[], T]) -> T:
    """Build a model whose weights may have to be downloaded.

    Earlier downloads are tried first, without a network. If they do not do, we knock once where
    downloads come from, because the model libraries retry for a minute when nobody answers.

    Parameters
    ----------
    wanted : str
        The name that the reader asked for.
    build : callable
        May be called twice.

    Raises
    ------
    WeightsUnavailableError
        For whatever goes wrong with a download.
    """
    from huggingface_hub import constants

    forbidden = constants.HF_HUB_OFFLINE
    with quiet():
        try:
            constants.HF_HUB_OFFLINE = True
            return build()
        except Exception as error:  # each of the model libraries raises its own kinds
            missing = isinstance(error, (OSError, RuntimeError))
            offline_error = error
        finally:
            constants.HF_HUB_OFFLINE = forbidden
        if forbidden or not _hub_answers():
            why = "downloads are switched off (HF_HUB_OFFLINE)" if forbidden else "no network"
            found = "no earlier download was found" if missing else str(offline_error)
            raise WeightsUnavailableError(wanted, f"{why}, and {found}") from offline_error
        try:
            return build()
        except Exception as error:
            raise WeightsUnavailableError(wanted, error) from error


def _hub_answers() -> bool:
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=_PATIENCE_SECONDS)
    except Exception:  # no route, no name, refused, too slow, a proxy's fault
        return False
    return True
