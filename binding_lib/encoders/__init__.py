"""Who looks at the scenes: encoders by name, text in or images in, (N, d) float32 out."""

from binding_lib.encoders.base import Encoder
from binding_lib.encoders.registry import list_encoders, load_encoder
from binding_lib.encoders.weights import MissingExtraError, WeightsUnavailableError

__all__ = [
    "Encoder",
    "MissingExtraError",
    "WeightsUnavailableError",
    "list_encoders",
    "load_encoder",
]
