#!/usr/bin/env bash
# Judges an unpacked vLLM on a GPU:   judge.sh SITE WORK s1|s3|floor [OPTION ...]
#
#   s1: compile x chunk, synchronous, a 4B-shaped model, six prompts of 8,051 tokens, one GPU
#   s3: chunk x pipeline stages, a small model, V2 runner, two GPUs
#   floor: the prompts of s1 six times in each cell, without a verdict of `parity run`
#
# Run it from the repository's root, with the python3 that has torch and transformers. Ends with the
# exit code of `parity run`, which takes the options: 1 when a difference was found, 0 when all agree.
set -uo pipefail
site=$1 work=$2 what=$3; shift 3
here=$(dirname "$0")
export PARITY_HOME=$work/home PARITY_CACHE=$work/cache PARITY_ORACLE_DEVICE=cuda
export PARITY_VLLM_PYTHON=$(command -v python3) VLLM_PYTHONPATH=$site VLLM_USE_FLASHINFER_SAMPLER=0
case $what in
  s1 | floor) shape=() only=compile,chunk long=8192 chunk=2048 ;;
  s3) shape=(--layers 8 --hidden 1024 --intermediate 3072 --heads 8 --tokens 1999) only=chunk,pp
      long=2048 chunk=256; export VLLM_USE_V2_MODEL_RUNNER=1 ;;
  *) echo "judge.sh: expected s1, s3 or floor, got $what" >&2; exit 2 ;;
esac
model=$work/${what/floor/s1}
[ -f "$model/cases.jsonl" ] || python3 "$here/checkpoint.py" "$model" "${shape[@]}" || exit 2
if [ "$what" = floor ]; then
  PYTHONPATH=${PYTHONPATH:-.} exec python3 "$here/floor.py" "$model" "$@"
fi
python3 -m harness run --system vllm --model "$model" --cases "$model/cases.jsonl" --only "$only" \
  --dtype bfloat16 --size max_model_len=$long --size chunk=$chunk --size max_num_seqs=2 \
  --set gpu_memory_utilization=0.35 "$@"
code=$?
python3 "$here/cosines.py" "$(ls -dt "$PARITY_HOME"/runs/* | head -1)"
exit $code
