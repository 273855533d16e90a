#!/bin/bash
# A study on Slurm: sbatch docs/clusters/slurm.sh, from a checkout on a file system that all nodes share.
# Sent again after its time is up (or at once by --requeue), it goes on from the results folder.
# Not run by this project's tests: they have no Slurm.
#SBATCH --job-name=adalayers
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@300
#SBATCH --requeue
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"
source .venv/bin/activate

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000)) # several jobs may share a node
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$PWD/.ray-token-$SLURM_JOB_ID"
(umask 077 && openssl rand -hex 32 > "$RAY_AUTH_TOKEN_PATH")
trap 'rm -f "$RAY_AUTH_TOKEN_PATH"' EXIT

# The first node starts the head, the others join it; the command runs on the first.
srun --kill-on-bad-exit=1 ray symmetric-run --address "$head:$port" --min-nodes "$SLURM_NNODES" \
  --num-cpus "$SLURM_CPUS_PER_TASK" -- \
  python studies/alpha_lambda.py --backbone roberta-large --dataset cola --address "$head:$port" \
  --output "$PWD/results" --cache-dir "$PWD/cache"
