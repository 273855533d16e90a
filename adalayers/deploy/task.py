"""A trained task as the field shares models: safetensors and JSON, saved, loaded and pushed by the hub's own mixin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelHubMixin, snapshot_download
from huggingface_hub.errors import HfHubHTTPError

from adalayers.deploy.model_card import model_card
from adalayers.deploy.summary import study_summary
from adalayers.errors import BadInput
from adalayers.models.model import FusionModel
from adalayers.models.saved import CONFIG, WEIGHTS, load, save
from adalayers.storage import hub
from adalayers.storage.folder import Folder

CARD = "README.md"
_HUB_OPTIONS = ("revision", "cache_dir", "force_download", "local_files_only", "token")


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
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **given: Any) -> TrainedTask:  # type: ignore[override]
        """Return the task in a folder, such as a study's `best/`, or in a repository of the hub.

        Args:
            given: `backbone`, `data_dir` as for `adalayers.load`: the base model is then checked to be the one that the
                   parts were trained on; `revision`, `token`, `cache_dir`, `local_files_only` as for the hub's own.

        Raises:
            BadInput: There is no such folder or repository, or it holds something else.
        """
        name = str(pretrained_model_name_or_path)
        if not Path(name).expanduser().is_dir():
            if name.count("/") != 1 or name.startswith(("/", ".", "~")):
                raise BadInput(
                    f"wanted a folder of trained parts, or a hub id org/name, got {name!r}; check the path"
                )
            if not given.get("local_files_only"):
                hub.require_hub(f"the trained parts {name!r}")
        try:
            return super().from_pretrained(pretrained_model_name_or_path, **given)
        except (HfHubHTTPError, OSError) as error:
            raise BadInput(
                f"wanted the trained parts {name!r}, they cannot be had ({type(error).__name__}: "
                f"{hub.first_line(error)}); check the name, or log in (hf auth login)"
            ) from error
        except BadInput:
            raise
        except (ValueError, AttributeError) as error:  # of the mixin, which reads config.json before we do
            raise BadInput(
                f"wanted the trained parts {name!r}, their {CONFIG} cannot be read ({hub.first_line(error)}); take "
                "another copy"
            ) from error

    @classmethod
    def _from_pretrained(  # type: ignore[override]
        cls,
        *,
        model_id: str,
        backbone: str | None = None,
        data_dir: str | Path | None = None,
        **options: Any,
    ) -> TrainedTask:
        folder = Path(model_id).expanduser()
        if not folder.is_dir():
            of_hub = {name: options[name] for name in _HUB_OPTIONS if name in options}
            folder = Path(snapshot_download(model_id, allow_patterns=[CONFIG, WEIGHTS, CARD], **of_hub))
        model = load(folder, backbone=backbone, data_dir=data_dir)
        if study := study_summary(folder, model.about):
            model.about = {**model.about, "study": study}
        return cls(model)

    def _save_pretrained(self, save_directory: Path) -> None:
        """Write config.json and model.safetensors."""
        save(self.model, Folder(save_directory), about=self.about)

    def generate_model_card(self, *_: Any, **__: Any) -> ModelCard:
        """Return the card: data, scores with intervals, mix weights, use."""
        return ModelCard(model_card(self.model))
