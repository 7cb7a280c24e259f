#!/usr/bin/env bash
# Packs a GPU vLLM wheel, and the packages that a machine with torch and transformers but without a
# package registry lacks, into parts of under 60 MB:   pack.sh VERSION OUT_DIR
#
#   OUT_DIR/a/c.txz       the core extension
#   OUT_DIR/b/py.txz      Python, and FlashAttention 3
#   OUT_DIR/b/deps/*.whl  small packages
#   OUT_DIR/c/*.whl       larger ones
#
# Left out is what pooling does not load: FlashAttention 2, mixture-of-experts, DeepGEMM and FlashMLA
# kernels. For CPython 3.12 on x86-64. Another version may need another pin or one more package: read
# the ModuleNotFoundError and add it to `needs`.
set -euo pipefail
version=$1 out=$(mkdir -p "$2" && cd "$2" && pwd)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
get=(python3 -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp)
for tag in manylinux_2_28 manylinux_2_27 manylinux_2_17 manylinux2014 manylinux1 manylinux_2_24 \
  manylinux_2_31 manylinux_2_34 manylinux_2_35; do
  get+=(--platform "${tag}_x86_64")
done
needs=(annotated-types cachetools cbor2 dill depyf==0.20.0 astor email-validator dnspython
  'fastapi<0.137.0,>=0.133.0' googleapis-common-protos llguidance==1.7.0 more-itertools msgspec openai
  httpx2 httpcore2 truststore distro jiter sniffio
  opentelemetry-api==1.39.0 opentelemetry-sdk==1.39.0 opentelemetry-exporter-otlp==1.39.0
  opentelemetry-exporter-otlp-proto-common==1.39.0 opentelemetry-exporter-otlp-proto-grpc==1.39.0
  opentelemetry-exporter-otlp-proto-http==1.39.0 opentelemetry-proto==1.39.0
  opentelemetry-semantic-conventions==0.60b0 opentelemetry-semantic-conventions-ai openai-harmony
  partial-json-parser pybase64 pydantic==2.12.5 pydantic-core==2.41.5 pydantic-extra-types
  pydantic-settings python-dotenv python-multipart pyzmq starlette typing-inspection
  importlib-metadata zipp lark==1.2.2 diskcache==5.6.3 blake3 setproctitle ijson py-cpuinfo
  python-json-logger prometheus-fastapi-instrumentator cloudpickle watchfiles
  compressed-tensors==0.17.0 lm-format-enforcer==0.11.3 interegular outlines_core==0.2.14
  jsonschema jsonschema-specifications referencing rpds-py model-hosting-container-standards jmespath
  mcp==1.20.0 httpx-sse sse-starlette pyjwt cryptography==46.0.3 cffi pycparser anthropic==0.71.0
  docstring-parser)
mkdir -p "$out/a" "$out/b/deps" "$out/c"
"${get[@]}" -d "$work" "vllm==$version"
needs+=("$(unzip -p "$work"/vllm-*.whl '*/METADATA' |
  sed -n 's/^Requires-Dist: \(apache-tvm-ffi==[0-9.]*\).*/\1/p')")
"${get[@]}" -d "$out/b/deps" "${needs[@]}"
"${get[@]}" -d "$out/c" xgrammar==0.2.1 mistral_common==1.11.5 pycountry
cd "$work" && unzip -q vllm-*.whl && rm vllm-*.whl
tar -cf - vllm/_C_stable_libtorch.abi3.so | xz -2 -T2 >"$out/a/c.txz"
tar -cf - --exclude='vllm/third_party/fmha_sm100' --exclude='vllm/third_party/deep_gemm' \
  --exclude='vllm/vllm-rs' --exclude='vllm/_moe_C*' --exclude='vllm/_C_stable*' \
  --exclude='vllm/vllm_flash_attn/_vllm_fa2_C*' --exclude='vllm/_flashmla_C*' \
  vllm vllm-"$version".dist-info | xz -2 -T2 >"$out/b/py.txz"
du -sh "$out"/*
