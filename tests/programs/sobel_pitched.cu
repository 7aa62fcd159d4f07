// Edge detection on an image in pitched memory: cudaMallocPitch, cudaMemcpy2D with different pitches on both sides,
// cudaMemset2D for a frame, and a copy of a part of the image.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                              \
    do {                                                                         \
        const cudaError_t error = call;                                          \
        if (error != cudaSuccess) {                                              \
            printf("Error: %s:%d, ", __FILE__, __LINE__);                        \
            printf("code: %d, reason: %s\n", error, cudaGetErrorString(error));  \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

typedef unsigned char uchar;

__global__ void sobel(const uchar *in, size_t pitchIn, uchar *out, size_t pitchOut, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const uchar *above = in + (y - 1) * pitchIn, *here = in + y * pitchIn, *below = in + (y + 1) * pitchIn;
    int gx = above[x + 1] + 2 * here[x + 1] + below[x + 1] - above[x - 1] - 2 * here[x - 1] - below[x - 1];
    int gy = below[x - 1] + 2 * below[x] + below[x + 1] - above[x - 1] - 2 * above[x] - above[x + 1];
    out[y * pitchOut + x] = (uchar)min(abs(gx) + abs(gy), 255);
}

int main(int argc, char **argv)
{
    const int width = 117, height = 43, hostPitch = 120;
    uchar *h_in = (uchar *)malloc(hostPitch * height), *h_out = (uchar *)calloc(hostPitch, height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < hostPitch; x++) h_in[y * hostPitch + x] = (uchar)((x * x + y * 13) >> 2);

    uchar *d_in, *d_out;
    size_t pitchIn, pitchOut;
    CHECK(cudaMallocPitch((void **)&d_in, &pitchIn, width, height));
    CHECK(cudaMallocPitch((void **)&d_out, &pitchOut, width, height));
    if (pitchIn < (size_t)width || pitchIn % 32) { printf("FAIL: a pitch of %zu\n", pitchIn); return 1; }
    CHECK(cudaMemcpy2D(d_in, pitchIn, h_in, hostPitch, width, height, cudaMemcpyHostToDevice));
    CHECK(cudaMemset2D(d_out, pitchOut, 7, width, height));
    dim3 block(32, 8), grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
    sobel<<<grid, block>>>(d_in, pitchIn, d_out, pitchOut, width, height);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy2D(h_out, hostPitch, d_out, pitchOut, width, height, cudaMemcpyDeviceToHost));

    for (int y = 0; y < height; y++)
        for (int x = 0; x < hostPitch; x++) {
            int want = x >= width ? 0 : 7;  // the padding of the host's rows stays as it was
            if (x >= 1 && y >= 1 && x < width - 1 && y < height - 1) {
#define P(dx, dy) h_in[(y + dy) * hostPitch + x + dx]
                int gx = P(1, -1) + 2 * P(1, 0) + P(1, 1) - P(-1, -1) - 2 * P(-1, 0) - P(-1, 1);
                int gy = P(-1, 1) + 2 * P(0, 1) + P(1, 1) - P(-1, -1) - 2 * P(0, -1) - P(1, -1);
                want = abs(gx) + abs(gy) > 255 ? 255 : abs(gx) + abs(gy);
            }
            if (h_out[y * hostPitch + x] != want) { printf("FAIL: (%d, %d)\n", x, y); return 1; }
        }

    // A window of the image, from device to device, then to a dense array.
    uchar window[9][11], *d_window;
    CHECK(cudaMalloc((void **)&d_window, sizeof(window)));
    CHECK(cudaMemcpy2D(d_window, 11, d_in + 5 * pitchIn + 20, pitchIn, 11, 9, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy(window, d_window, sizeof(window), cudaMemcpyDeviceToHost));
    for (int y = 0; y < 9; y++)
        if (memcmp(window[y], &h_in[(y + 5) * hostPitch + 20], 11)) { printf("FAIL: window row %d\n", y); return 1; }
    if (cudaMemcpy2D(d_in, width - 1, h_in, hostPitch, width, height, cudaMemcpyHostToDevice) != cudaErrorInvalidPitchValue) {
        printf("FAIL: rows longer than the pitch were copied\n");
        return 1;
    }
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    CHECK(cudaFree(d_window));
    free(h_in);
    free(h_out);
    printf("PASS\n");
    return 0;
}
