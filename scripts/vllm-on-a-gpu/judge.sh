#!/usr/bin/env bash
# Judges an unpacked vLLM on a GPU:   judge.sh SITE WORK s1|s2|s2-chunk|s3|floor [OPTION ...]
#
#   s1: compile x chunk, synchronous, a 4B-shaped model, six prompts of 8,051 tokens, one GPU
#   s2: compile x async, token embeddings as the model leaves them, prompts of one chunk, one GPU
#   s2-chunk: compile x chunk, synchronous, token embeddings of prompts of several chunks, one GPU
#   s3: chunk x pipeline stages, a small model, V2 runner, two GPUs
#   floor: the prompts of s1 six times in each cell, without a verdict of `parity run`
#
# s2 asks for what hands out a view of the model's output: no normalisation, and a head in the model's
# own dtype (else the head makes a copy). Where CUDA graphs hold that output, the next step writes
# over it: hence graphs for every size of a step, and steps of other sizes one after another.
#
# Run it from the repository's root, with the python3 that has torch and transformers. Ends with the
# exit code of `parity run`, which takes the options: 1 when a difference was found, 0 when all agree.
set -uo pipefail
site=$1 work=$2 what=$3; shift 3
here=$(dirname "$0")
export PARITY_HOME=$work/home PARITY_CACHE=$work/cache PARITY_ORACLE_DEVICE=cuda
export PARITY_VLLM_PYTHON=$(command -v python3) VLLM_PYTHONPATH=$site VLLM_USE_FLASHINFER_SAMPLER=0
options=() cases=cases.jsonl seqs=2 folder=$what
case $what in
  s1 | floor) shape=() only=compile,chunk long=8192 chunk=2048 folder=s1 ;;
  s2) shape=(--layers 16 --task token_embed-plain --cases 2 --prompts 40 --least 150 --tokens 250)
      only=compile,async long=2048 chunk=256 seqs=32
      options=(--set 'hf_overrides={"head_dtype":"model"}' --set
        'compilation_config={"cudagraph_capture_sizes":[256,512,768,1024,1280,1536,1792,2048]}') ;;
  s2-chunk) shape=(--layers 16 --task token_embed --cases 2 --prompts 4 --least 900 --tokens 1000)
      only=compile,chunk long=2048 chunk=256 seqs=128 folder=s2 cases=chunked.jsonl ;;
  s3) shape=(--layers 8 --hidden 1024 --intermediate 3072 --heads 8 --tokens 1999) only=chunk,pp
      long=2048 chunk=256; export VLLM_USE_V2_MODEL_RUNNER=1 ;;
  *) echo "judge.sh: expected s1, s2, s2-chunk, s3 or floor, got $what" >&2; exit 2 ;;
esac
model=$work/$folder
[ -f "$model/$cases" ] ||
  python3 "$here/checkpoint.py" "$model" --name "$cases" "${shape[@]}" || exit 2
if [ "$what" = floor ]; then
  PYTHONPATH=${PYTHONPATH:-.} exec python3 "$here/floor.py" "$model" "$@"
fi
python3 -m harness run --system vllm --model "$model" --cases "$model/$cases" --only "$only" \
  --dtype bfloat16 --size max_model_len=$long --size chunk=$chunk --size max_num_seqs=$seqs \
  --set gpu_memory_utilization=0.35 "${options[@]}" "$@"
code=$?
python3 "$here/cosines.py" "$(ls -dt "$PARITY_HOME"/runs/* | head -1)"
exit $code
