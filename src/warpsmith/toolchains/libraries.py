"""NVIDIA's libraries that warpsmith does not have: one sentence for each way to meet one."""

from __future__ import annotations

import re
from pathlib import PurePath

#: Part of the names of headers and of -l -> the library's own name.
_LIBRARIES = {
    "cublasLt": "cuBLASLt", "cublasXt": "cuBLASXt", "cublas": "cuBLAS", "cufftw": "cuFFT", "cufftXt": "cuFFT",
    "cufft": "cuFFT", "curand": "cuRAND", "cusparse": "cuSPARSE", "cusparseLt": "cuSPARSELt", "cusolver": "cuSOLVER",
    "cudnn": "cuDNN", "nccl": "NCCL", "cutensor": "cuTENSOR", "nvjpeg": "nvJPEG", "nppi": "NPP", "npps": "NPP",
    "nppc": "NPP", "npp": "NPP", "nvToolsExt": "NVTX", "nvtx3": "NVTX", "nvrtc": "NVRTC", "nvJitLink": "nvJitLink",
    "nvml": "NVML", "nvidia-ml": "NVML", "cupti": "CUPTI", "nvshmem": "NVSHMEM", "cufile": "cuFile",
    "cuda": "the CUDA driver API", "cudla": "cuDLA", "nvgraph": "nvGRAPH", "cugraph": "cuGraph",
}  # fmt: skip
_NO_HEADER = re.compile(
    r"^(?P<file>[^\s:(][^:(\n]*)[:(](?P<line>\d+)[:)].*?(?:fatal error: (?P<gcc>[\w./+-]+): No such file"
    r"|cannot open source file \"(?P<edg>[^\"]+)\")",
    re.MULTILINE,
)


def library(name: str) -> str | None:
    """The library that a header or the word after -l belongs to."""
    stem = name.split("/")[0] if "/" in name else PurePath(name).stem
    stem = stem.removesuffix("_static").removesuffix("_v2")
    best = max((known for known in _LIBRARIES if _belongs(stem, known)), key=len, default=None)
    return _LIBRARIES[best] if best else None


def _belongs(stem: str, known: str) -> bool:
    if known in ("cuda", "nccl", "cupti"):
        return stem == known
    return re.fullmatch(rf"{re.escape(known)}(?:_\w+|[A-Z]\w*|\w{{0,3}}|Sp|Dn|Mg)?", stem) is not None


def missing_library(name: str) -> str | None:
    """What to say of ``-lNAME``; None if the library is not NVIDIA's."""
    found = library(name)
    return f"-l{name}: the program needs NVIDIA's library {found}, which warpsmith does not have" if found else None


def missing_header(log: str) -> str | None:
    """What to say of a compiler's text if it complains of the header of such a library."""
    found = _NO_HEADER.search(log)
    if not found:
        return None
    header = found["gcc"] or found["edg"]
    name = library(header)
    where = f"{found['file']}:{found['line']}"
    return f"{where}: includes {header} of NVIDIA's library {name}, which warpsmith does not have" if name else None
