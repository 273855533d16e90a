"""A trained task as the field shares models: safetensors and JSON, saved, loaded and pushed by the hub's own mixin."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelHubMixin, snapshot_download

from adalayers.deploy.model_card import model_card, study_summary
from adalayers.errors import BadInput, local_path
from adalayers.models.model import FusionModel
from adalayers.models.saved import CONFIG, WEIGHTS, load, save
from adalayers.storage import hub
from adalayers.storage.folder import Folder
from adalayers.storage.to_json import to_json

CARD = "README.md"


class TrainedTask(ModelHubMixin, library_name="adalayers", tags=["adalayers", "layer-fusion"]):
    """A trained fusion and head, and what they were trained on: `save_pretrained`, `from_pretrained`, `push_to_hub`.

    Args:
        model: The trained parts; its `about` says on what they were trained, and what its study found
               (`study_summary`).

    What is saved is what a study's `best/` holds, and a model card. Of a frozen base model nothing is inside.
    """

    def __init__(self, model: FusionModel):
        self.model = model

    @property
    def about(self) -> dict[str, Any]:
        return self.model.about

    @classmethod
    def from_pretrained(  # type: ignore[override]  # the mixin's reads config.json before we can say what is wrong
        cls,
        name: str | Path,
        *,
        backbone: str | None = None,
        data_dir: str | Path | None = None,
        **of_hub: Any,
    ) -> TrainedTask:
        """Return the task in a folder, such as a study's `best/`, or in a repository of the hub.

        Args:
            name:     The folder, or the repository's id org/name.
            backbone: As for `adalayers.load`: the base model is then checked to be the one that they were trained on.
            data_dir: A folder of local copies of backbones.
            of_hub:   `revision`, `token`, `cache_dir`, `local_files_only`, ... of `huggingface_hub.snapshot_download`.

        Raises:
            BadInput: There is no such folder or repository, or it holds something else.
        """
        folder = local_path(name, "a folder of trained parts")
        if not folder.is_dir():
            folder = _downloaded(str(name), of_hub)
        model = load(folder, backbone=backbone, data_dir=data_dir)
        if study := study_summary(folder, model.about):
            model.about = {**model.about, "study": to_json(asdict(study))}
        return cls(model)

    def _save_pretrained(self, save_directory: Path) -> None:
        """Write config.json and model.safetensors."""
        save(self.model, Folder(save_directory), about=self.about)

    def generate_model_card(self, *_: Any, **__: Any) -> ModelCard:
        """Return the card: data, scores with intervals, mix weights, use."""
        return model_card(self.model)


def _downloaded(name: str, options: dict[str, Any]) -> Path:
    """Return the folder into which the hub's client downloads a repository."""
    if name.count("/") != 1 or name.startswith(("/", ".", "~")):
        raise BadInput(
            f"wanted a folder of trained parts, or a hub id org/name, got {name!r}; check the path"
        )
    if not options.get("local_files_only"):
        hub.require_hub(f"the trained parts {name!r}")
    wanted = f"wanted the trained parts {name!r} from the hub, they cannot be had"
    with hub.refusing(wanted, "check the name, or log in (hf auth login)"):
        return Path(snapshot_download(name, allow_patterns=[CONFIG, WEIGHTS, CARD], **options))
