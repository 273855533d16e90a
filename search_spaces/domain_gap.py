"""The learning rates of a study of data (open question 1): those of a study of base models, and nothing else."""

from search_spaces.backbones import GRID as GRID
from search_spaces.backbones import NUISANCE as NUISANCE

# The factor is the case: the dataset, which lies at some distance from the reference. Datasets of other sizes want
# other rates too.
