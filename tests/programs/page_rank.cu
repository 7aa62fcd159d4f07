// PageRank by pushing along edges with atomics and by pulling over the transposed graph: both must agree with the host.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CALL(x) { const cudaError_t status = (x); if (status != cudaSuccess) { printf("\nCUDA Error: %s (err_num=%d)\n", cudaGetErrorString(status), status); exit(1); } }

__global__ void push(const int *offsets, const int *targets, const double *rank, double *next, double *dangling, int n)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    double lost = 0;
    if (v < n) {
        int begin = offsets[v], end = offsets[v + 1];
        if (begin == end) lost = rank[v];
        for (int e = begin; e < end; e++) atomicAdd(&next[targets[e]], rank[v] / (end - begin));
    }
    if (__syncthreads_or(lost != 0) && lost != 0) atomicAdd(dangling, lost);
}

__global__ void pull(const int *offsets, const int *sources, const int *degree, const double *rank, double *next, double *dangling, int n)
{
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
        double sum = 0;
        for (int e = offsets[v]; e < offsets[v + 1]; e++) sum += rank[sources[e]] / degree[sources[e]];
        next[v] = sum;
        if (degree[v] == 0) atomicAdd(dangling, rank[v]);
    }
}

__global__ void damp(double *next, const double *dangling, int n, double d)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) next[v] = (1 - d) / n + d * (next[v] + *dangling / n);
}

template <class T> T *toDevice(const std::vector<T> &v)
{
    T *p;
    CUDA_CALL(cudaMalloc(&p, v.size() * sizeof(T)));
    CUDA_CALL(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

int main()
{
    const int n = 600, rounds = 25;
    const double d = 0.85;
    std::vector<std::vector<int>> out(n), in(n);
    unsigned s = 77;
    for (int v = 0; v < n; v++) {
        int degree = v % 11 == 3 ? 0 : 1 + v % 5;
        for (int k = 0; k < degree; k++) {
            s = s * 1664525u + 1013904223u;
            int w = (s >> 8) % (k == 0 ? 20 : n);  // some pages are popular
            out[v].push_back(w);
            in[w].push_back(v);
        }
    }
    std::vector<int> outOffsets{0}, targets, inOffsets{0}, sources, degree;
    for (int v = 0; v < n; v++) {
        targets.insert(targets.end(), out[v].begin(), out[v].end());
        sources.insert(sources.end(), in[v].begin(), in[v].end());
        outOffsets.push_back((int)targets.size());
        inOffsets.push_back((int)sources.size());
        degree.push_back((int)out[v].size());
    }
    std::vector<double> rank(n, 1.0 / n), next(n);
    for (int r = 0; r < rounds; r++) {
        double lost = 0;
        next.assign(n, 0.0);
        for (int v = 0; v < n; v++) {
            if (out[v].empty()) lost += rank[v];
            for (int w : out[v]) next[w] += rank[v] / out[v].size();
        }
        for (int v = 0; v < n; v++) rank[v] = (1 - d) / n + d * (next[v] + lost / n);
    }

    int *dOutOffsets = toDevice(outOffsets), *dTargets = toDevice(targets), *dInOffsets = toDevice(inOffsets), *dSources = toDevice(sources), *dDegree = toDevice(degree);
    double *dDangling;
    CUDA_CALL(cudaMalloc(&dDangling, sizeof(double)));
    for (int method = 0; method < 2; method++) {
        double *a = toDevice(std::vector<double>(n, 1.0 / n)), *b = toDevice(std::vector<double>(n));
        for (int r = 0; r < rounds; r++) {
            CUDA_CALL(cudaMemset(dDangling, 0, sizeof(double)));
            if (method == 0) {
                CUDA_CALL(cudaMemset(b, 0, n * sizeof(double)));
                push<<<(n + 63) / 64, 64>>>(dOutOffsets, dTargets, a, b, dDangling, n);
            } else {
                pull<<<2, 96>>>(dInOffsets, dSources, dDegree, a, b, dDangling, n);
            }
            damp<<<(n + 255) / 256, 256>>>(b, dDangling, n, d);
            CUDA_CALL(cudaGetLastError());
            double *t = a; a = b; b = t;
        }
        std::vector<double> got(n);
        CUDA_CALL(cudaMemcpy(got.data(), a, n * sizeof(double), cudaMemcpyDeviceToHost));
        double total = 0;
        for (int v = 0; v < n; v++) {
            total += got[v];
            if (fabs(got[v] - rank[v]) > 1e-14) { printf("FAIL: method %d, page %d: %.17g, not %.17g\n", method, v, got[v], rank[v]); return 1; }
        }
        if (fabs(total - 1) > 1e-12) { printf("FAIL: ranks add up to %.15f\n", total); return 1; }
        CUDA_CALL(cudaFree(a));
        CUDA_CALL(cudaFree(b));
    }
    printf("PASS: %d pages, %zu links\n", n, targets.size());
    return 0;
}
