"""Names of hidden states and shapes of backbones, for tests."""

from collections.abc import Iterable

import torch

from adalayers.states import Head, Shape, State, Stream


def encoder(*numbers: int) -> list[State]:
    """Return the hidden states of an encoder by number."""
    return [State("encoder", number) for number in numbers]


def made_shape(
    head: Head = "sequence", n_outputs: int = 3, layers: int = 4, width: int = 12, family: str = "bert"
) -> Shape:
    """Return the shape of a task on an encoder of `layers` layers."""
    return Shape(head, n_outputs, (Stream("encoder", layers),), width, family)


def made_states(states: Iterable[State], tokens: int, width: int, seed: int = 0) -> dict[State, torch.Tensor]:
    """Return random numbers as each of some hidden states of a batch: (tokens, width)."""
    generator = torch.Generator().manual_seed(seed)
    return {state: torch.randn(tokens, width, generator=generator) for state in states}


def moved(module: torch.nn.Module, by: float = 0.3) -> torch.nn.Module:
    """Move all parameters from their start, and return the module: zeros and ones hide what is left out."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(by * torch.randn_like(parameter))
    return module
