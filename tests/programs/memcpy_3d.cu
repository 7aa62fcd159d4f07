// Volumes: cudaMalloc3D, cudaMemcpy3D of whole volumes and of boxes, cudaMemset3D, and a kernel that walks a pitched one.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define OK(call) do { if (cudaError_t e_ = (call)) { std::printf("FAIL: line %d: %s\n", __LINE__, cudaGetErrorString(e_)); std::exit(1); } } while (0)

__global__ void negate(cudaPitchedPtr volume, int w, int h, int d) {
  int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y, z = threadIdx.z + blockIdx.z * blockDim.z;
  if (x >= w || y >= h || z >= d) return;
  char* slice = static_cast<char*>(volume.ptr) + z * volume.pitch * volume.ysize;
  float* row = reinterpret_cast<float*>(slice + y * volume.pitch);
  row[x] = -row[x];
}

int main() {
  const int w = 37, h = 11, d = 6;
  auto at = [&](int x, int y, int z) { return (z * h + y) * w + x; };
  std::vector<float> host(w * h * d), back(w * h * d, 0.0f);
  for (size_t i = 0; i < host.size(); ++i) host[i] = i + 0.5f;

  cudaPitchedPtr volume;
  OK(cudaMalloc3D(&volume, make_cudaExtent(w * sizeof(float), h, d)));
  if (volume.pitch < w * sizeof(float) || volume.ysize != h) return std::puts("FAIL: pitched pointer"), 1;
  cudaMemcpy3DParms in = {};
  in.srcPtr = make_cudaPitchedPtr(host.data(), w * sizeof(float), w, h);
  in.dstPtr = volume;
  in.extent = make_cudaExtent(w * sizeof(float), h, d);
  in.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&in));
  negate<<<dim3(2, 3, 3), dim3(32, 4, 2)>>>(volume, w, h, d);
  OK(cudaGetLastError());

  // A box from inside the volume into another place of the host's.
  const int bw = 5, bh = 4, bd = 3;
  cudaMemcpy3DParms out = {};
  out.srcPtr = volume;
  out.srcPos = make_cudaPos(7 * sizeof(float), 2, 1);
  out.dstPtr = make_cudaPitchedPtr(back.data(), w * sizeof(float), w, h);
  out.dstPos = make_cudaPos(20 * sizeof(float), 6, 3);
  out.extent = make_cudaExtent(bw * sizeof(float), bh, bd);
  out.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3D(&out));
  for (int z = 0; z < d; ++z)
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        bool inside = x >= 20 && x < 20 + bw && y >= 6 && y < 6 + bh && z >= 3 && z < 3 + bd;
        float want = inside ? -host[at(x - 13, y - 4, z - 2)] : 0;
        if (back[at(x, y, z)] != want) return std::printf("FAIL: box at (%d, %d, %d)\n", x, y, z), 1;
      }

  // Zero all but the first slices, asynchronously, then the whole volume back.
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  cudaPitchedPtr upper = volume;
  upper.ptr = static_cast<char*>(volume.ptr) + 2 * volume.pitch * h;
  OK(cudaMemset3DAsync(upper, 0, make_cudaExtent(w * sizeof(float), h, d - 2), stream));
  cudaMemcpy3DParms all = {};
  all.srcPtr = volume;
  all.dstPtr = make_cudaPitchedPtr(back.data(), w * sizeof(float), w, h);
  all.extent = make_cudaExtent(w * sizeof(float), h, d);
  all.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3DAsync(&all, stream));
  OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < w * h * d; ++i)
    if (back[i] != (i < 2 * w * h ? -host[i] : 0)) return std::printf("FAIL: element %d\n", i), 1;
  OK(cudaStreamDestroy(stream));
  OK(cudaFree(volume.ptr));
  std::puts("PASS");
}
