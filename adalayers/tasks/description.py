"""What a clone of a hub repository says of its own files: the configs of its README, and the types of columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adalayers.errors import BadInput, unknown
from adalayers.storage import hub
from adalayers.tasks.files import Source, find

README = "README.md"


@dataclass(frozen=True)
class Description:
    """What a folder's description says.

    Attributes:
        folder: Where the files are.
        sources: The splits that it names, each with its files; () where it names none.
        features: The types of its columns, None where it says none.
    """

    folder: Path
    sources: tuple[Source, ...] = ()
    features: Any = None


def read(folder: Path, config: str | None) -> Description:
    """Return what the description beside a folder's files says of a config, or of the only one.

    Raises:
        BadInput: If it cannot be read, has no such config, or several of which none is named.
    """
    import huggingface_hub
    from datasets.info import DatasetInfosDict
    from datasets.utils.metadata import MetadataConfigs

    try:
        configs: Any = {}
        if (folder / README).exists():
            card = huggingface_hub.DatasetCard.load(folder / README, ignore_metadata_errors=True)
            configs = MetadataConfigs.from_dataset_card_data(card.data)
        infos = DatasetInfosDict.from_directory(str(folder))
    except Exception as error:  # whatever a user's YAML and JSON make their readers raise
        raise _unreadable(folder, f"{type(error).__name__}: {hub.first_line(error)}") from error
    name = config if config in configs or config in infos else None
    if configs and name is None:
        if config is not None:
            raise unknown(f"config of {folder}", config, configs)
        name = next(iter(configs)) if len(configs) == 1 else configs.get_default_config_name()
        if name is None:
            raise BadInput(
                f"wanted one config of {folder}, which has {', '.join(configs)}; name the folder of one, or its files "
                "with --splits train=FILE"
            )
    info = infos.get(name or "default") or (next(iter(infos.values())) if len(infos) == 1 else None)
    chosen = configs.get(name, {})
    root = (folder / chosen.get("data_dir", "")).resolve()
    if not root.is_relative_to(folder) or not root.is_dir():
        raise _unreadable(folder, f"data_dir {chosen['data_dir']!r} is no folder there")
    try:
        sources = _sources(root, chosen.get("data_files") or [])
    except (KeyError, TypeError, ValueError, NotImplementedError) as error:
        raise _unreadable(folder, f"data_files of {name!r} name no files: {hub.first_line(error)}") from error
    return Description(root, sources, info.features if info else None)


def _unreadable(folder: Path, why: str) -> BadInput:
    return BadInput(
        f"wanted {README} and dataset_infos.json in {folder} to describe its files, they cannot be read ({why}); "
        "correct them, or move them away"
    )


def _sources(root: Path, data_files: Any) -> tuple[Source, ...]:
    """Return the splits that a config names; their files are those of data below the folder alone."""
    there = {file.path: file for source in find(root) for file in source.files}
    splits = data_files if isinstance(data_files, list) and data_files else []
    if isinstance(data_files, str) or not all(isinstance(item, dict) for item in splits):
        splits = [{"split": "train", "path": data_files}]
    named = []
    for item in splits:
        patterns = [item["path"]] if isinstance(item["path"], str) else item["path"]
        found = sorted({path for pattern in patterns for path in root.glob(pattern)} & {*there})
        named.append(Source(item["split"], item["split"], tuple(there[path] for path in found)))
    return tuple(source for source in named if source.files)
