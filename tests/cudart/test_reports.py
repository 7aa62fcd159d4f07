"""What a person is told when a program goes wrong."""

from __future__ import annotations

import re

import pytest
from conftest import Runner


def test_out_of_bounds(run: Runner) -> None:
    ran = run(
        """#include <cstdio>
__global__ void fill(float* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) p[i] = i;
}
int main() {
  float* d;
  cudaMalloc(&d, 100 * sizeof(float));
  fill<<<4, 32>>>(d, 100);
  printf("launch: %s\\n", cudaGetErrorName(cudaGetLastError()));
  printf("wait: %s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""
    )
    assert ran.out == "launch: cudaSuccess\nwait: cudaErrorIllegalAddress\n"
    assert ran.err.startswith("warpsmith: out-of-bounds write of 4 bytes")
    assert 'just past the end of the 400-byte allocation "cudaMalloc call 1"' in ran.err
    assert "in kernel fill, at " in ran.err
    assert "program.cu:4 (st.global.f32" in ran.err
    assert "thread (4,0,0) of block (3,0,0)" in ran.err
    assert re.search(r"the memory was allocated (in main|at .*program.cu:8)", ran.err)
    (problem,) = ran.result.problems
    assert problem["kind"] == "out-of-bounds"
    assert problem["kernel"] == "fill"
    assert problem["line"] == 4
    assert problem["file"].endswith("program.cu")
    assert (problem["block"], problem["thread"]) == ([3, 0, 0], [4, 0, 0])
    assert problem["grid"] == [4, 1, 1]
    assert problem["bytes"] == 4
    assert problem["near_size"] == 400


def test_output_before_the_fault_is_not_lost(run: Runner) -> None:
    ran = run(
        """#include <cstdio>
        __global__ void bad(int* p) { printf("about to\\n"); *p = 1; }
        int main() { printf("start\\n"); bad<<<1, 1>>>(nullptr); cudaDeviceSynchronize(); printf("end\\n"); }
        """
    )
    assert ran.out == "start\nabout to\nend\n"
    assert "through a null pointer" in ran.err


def test_same_mistake_is_told_once(run: Runner) -> None:
    ran = run(
        """
        __global__ void k() {}
        int main() { for (int i = 0; i < 5; ++i) k<<<1, 2000>>>(); return cudaGetLastError(); }
        """
    )
    assert ran.result.returncode == 1
    assert (
        ran.err == "warpsmith: k<<<(1, 1, 1), (2000, 1, 1)>>> was refused: 2000 threads a block, the chip allows 1024\n"
    )
    assert [p["kind"] for p in ran.result.problems] == ["launch"]


def test_host_code_that_uses_device_memory(run: Runner) -> None:
    ran = run("int main() { int* d; cudaMalloc(&d, 40); d[3] = 1; }")
    assert ran.result.returncode == -11
    assert "the host program touched device memory" in ran.err
    assert "12 bytes into the 40-byte allocation" in ran.err


def test_double_free_and_wrong_free(run: Runner) -> None:
    ran = run(
        """
        int main() {
          int *d, *h;
          cudaMalloc(&d, 40);
          cudaFree(d);
          cudaFree(d);
          cudaMallocHost(&h, 40);
          cudaFree(h);
          cudaFree(h + 1);
        }
        """
    )
    lines = ran.err.splitlines()
    assert len(lines) == 3
    assert 'it is the start of the 40-byte allocation "cudaMalloc call 1", which has been freed' in lines[0]
    assert "the memory is from cudaMallocHost, which is given back with cudaFreeHost" in lines[1]
    assert "it lies 4 bytes into" in lines[2]
    assert [p["kind"] for p in ran.result.problems] == ["memory"] * 3


def test_wild_host_pointer_in_a_copy(run: Runner) -> None:
    """NVIDIA's runtime crashes here."""
    ran = run(
        """#include <cstdio>
        int main() {
          int* d;
          cudaMalloc(&d, 40);
          puts(cudaGetErrorName(cudaMemcpy(d, (void*)0x123450000, 40, cudaMemcpyHostToDevice)));
          cudaFree(d);
          int h;
          puts(cudaGetErrorName(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost)));
        }
        """
    )
    assert ran.out == "cudaErrorInvalidValue\ncudaErrorInvalidValue\n"
    first, second = ran.err.splitlines()
    assert "the source 0x123450000 is not memory that is in use" in first
    assert "which has been freed" in second


def test_out_of_memory_says_whose(run: Runner) -> None:
    ran = run(
        """#include <cstdio>
        int main() {
          void* p;
          puts(cudaGetErrorName(cudaMalloc(&p, 200ull << 30)));
          puts(cudaGetErrorName(cudaMalloc(&p, 139ull << 30)));
        }
        """
    )
    assert ran.out == "cudaErrorMemoryAllocation\n" * 2
    chip, machine = ran.err.splitlines()
    assert "of the chip's 139.8 GiB" in chip
    assert "this machine has only" in machine
    assert ran.result.problems == ()
    assert len(ran.result.notes) == 2


def test_unsupported_instruction_names_its_place(run: Runner) -> None:
    ran = run(
        """#include <cstdio>
__global__ void fine(int* p) { *p = 1; }
__global__ void odd(int* p) {
  asm volatile("multimem.red.global.add.u32 [%0], 1;" ::"l"(p));
  *p = 2;
}
int main() {
  int *d, h = 0;
  cudaMalloc(&d, 4);
  odd<<<1, 1>>>(d);
  puts(cudaGetErrorName(cudaGetLastError()));
  fine<<<1, 1>>>(d);
  cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);
  printf("%d\\n", h);
}
"""
    )
    assert ran.out == "cudaErrorInvalidPtx\n1\n"
    assert re.search(r"^warpsmith: .*odd.*multimem.*PTX line \d+, .*program\.cu:4$", ran.err, re.MULTILINE)
    assert [p["kind"] for p in ran.result.problems] == ["compile"]


TEXTURE = """
    #include <cuda_runtime.h>
    __global__ void look(cudaTextureObject_t t, float* out) {
      out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);  // here
    }
    __global__ void write(cudaSurfaceObject_t s) {
      surf2Dwrite(1.0f, s, threadIdx.x * 4, 1);  // there
    }
    int main() {
      float *d, *out;
      cudaMalloc(&d, 400);
      cudaMalloc(&out, 400);
      cudaResourceDesc r = {};
      r.resType = cudaResourceTypeLinear;
      r.res.linear.devPtr = d;
      r.res.linear.desc = cudaCreateChannelDesc<float>();
      r.res.linear.sizeInBytes = 400;
      cudaTextureDesc k = {};
      cudaTextureObject_t t = 0;
      cudaCreateTextureObject(&t, &r, &k, nullptr);
      cudaArray_t a;
      cudaMallocArray(&a, &r.res.linear.desc, 8, 4, cudaArraySurfaceLoadStore);
      cudaResourceDesc q = {};
      q.res.array.array = a;
      cudaSurfaceObject_t s;
      cudaCreateSurfaceObject(&s, &q);
      MISTAKE;
      look<<<1, 32>>>(t, out);
      cudaDeviceSynchronize();
    }
"""


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("cudaFree(d)", "uses a texture of memory that has been freed"),
        ("cudaDestroyTextureObject(t)", "which is not a texture object"),
        ("t = s", "which is not a texture object"),
        ("write<<<1, 9>>>(s)", "writes outside of a surface: x is 32 and the surface has 32 bytes a row"),
    ],
)
def test_textures_and_surfaces(run: Runner, mistake: str, said: str) -> None:
    ran = run(TEXTURE.replace("MISTAKE", mistake))
    assert said in ran.err
    place = "// there" if "write<<<" in mistake else "// here"
    line = next(i for i, text in enumerate(TEXTURE.splitlines(), 1) if place in text)
    assert any(p.get("line") == line for p in ran.result.problems) or f":{line}" in ran.err


def test_leaks_on_request(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
        #include <cuda_runtime.h>
        int main(int argc, char** argv) {
          int *a, *b, *c;
          for (int i = 0; i < 3; ++i) cudaMalloc(&a, 100);  // three
          cudaMallocHost(&b, 50);
          cudaMallocManaged(&c, 10);  // one
          cudaFreeHost(b);
          if (argc > 1) cudaDeviceReset();
        }
    """
    assert run(source).result.problems == ()
    monkeypatch.setenv("WARPSMITH_LEAKS", "1")
    for args in ((), ("reset",)):
        ran = run(source, args=args)
        said = sorted(str(p["message"]) for p in ran.result.problems)
        assert [p["kind"] for p in ran.result.problems] == ["leak", "leak"]
        assert said[0].startswith("1 allocation from cudaMallocManaged, 10 bytes in all, was never freed: allocated")
        assert said[1].startswith("3 allocations from cudaMalloc, 300 bytes in all, were never freed: allocated")
        assert said[1] in ran.err
