"""How embedding models bind concepts: the library under the course."""

from binding_lib.approximators import (
    MLPApproximator,
    ProductApproximator,
    ProductUnitsApproximator,
    TreeApproximator,
)
from binding_lib.claims import load_claims
from binding_lib.complexity import complexity_curve
from binding_lib.concepts import ConceptSpace, ObjectSplit
from binding_lib.decomposition import AdditiveDecomposition
from binding_lib.dual_encoder import DualEncoder, DualEncoderConfig
from binding_lib.encoders import WeightsUnavailableError, list_encoders, load_encoder
from binding_lib.probes import LinearProbe
from binding_lib.recognition import (
    bootstrap_interval,
    recognised,
    retrieval_accuracy,
    swap_accuracy,
)
from binding_lib.scenes import SceneSet, all_scenes, sample_scenes, swaps
from binding_lib.surgery import edit, remove
from binding_lib.sweeps import read_sweep, run_sweep
from binding_lib.trained import load_dual_encoder
from binding_lib.training import train_dual_encoder
from binding_lib.views.captions import text_space
from binding_lib.views.images import render_images
from binding_lib.views.releases import load_release

__all__ = [
    "AdditiveDecomposition",
    "ConceptSpace",
    "DualEncoder",
    "DualEncoderConfig",
    "LinearProbe",
    "MLPApproximator",
    "ObjectSplit",
    "ProductApproximator",
    "ProductUnitsApproximator",
    "SceneSet",
    "TreeApproximator",
    "WeightsUnavailableError",
    "all_scenes",
    "bootstrap_interval",
    "complexity_curve",
    "edit",
    "list_encoders",
    "load_claims",
    "load_dual_encoder",
    "load_encoder",
    "load_release",
    "read_sweep",
    "recognised",
    "remove",
    "render_images",
    "retrieval_accuracy",
    "run_sweep",
    "sample_scenes",
    "swap_accuracy",
    "swaps",
    "text_space",
    "train_dual_encoder",
]
