"""AdaLayers: hyperparameter and ablation studies of layer fusion on frozen transformers."""

__version__ = "0.1.0"
