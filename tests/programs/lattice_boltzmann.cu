// Fluid in a channel by the lattice Boltzmann method (nine velocities, double precision): the profile must become Poiseuille's
// parabola, and no mass may be lost.  Constant arrays in every thread, structure of arrays, two grids in turn.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int Q = 9, NX = 8, NY = 18;  // rows 0 and NY - 1 are walls
constexpr double kTau = 0.9, kForce = 1e-5;

__constant__ double c_weight[Q];
__constant__ int c_x[Q], c_y[Q], c_opposite[Q];

struct Fields {
  double *f[Q];  // one array for each velocity; passed to the kernel by value
};

__device__ double equilibrium(int q, double rho, double ux, double uy) {
  double eu = c_x[q] * ux + c_y[q] * uy;
  return c_weight[q] * rho * (1 + 3 * eu + 4.5 * eu * eu - 1.5 * (ux * ux + uy * uy));
}

__global__ void collide_and_stream(Fields from, Fields to) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (x >= NX || y >= NY - 1) return;
  double f[Q], rho = 0, ux = 0, uy = 0;
#pragma unroll
  for (int q = 0; q < Q; ++q) {
    f[q] = from.f[q][y * NX + x];
    rho += f[q], ux += c_x[q] * f[q], uy += c_y[q] * f[q];
  }
  ux = ux / rho + kTau * kForce / rho;
  uy /= rho;
#pragma unroll
  for (int q = 0; q < Q; ++q) {
    double after = f[q] - (f[q] - equilibrium(q, rho, ux, uy)) / kTau;
    int tx = (x + c_x[q] + NX) % NX, ty = y + c_y[q];
    if (ty == 0 || ty == NY - 1) to.f[c_opposite[q]][y * NX + x] = after;  // a wall throws it back
    else to.f[q][ty * NX + tx] = after;
  }
}

__global__ void velocity(Fields fields, double* ux, double* mass) {
  int x = threadIdx.x, y = blockIdx.x + 1;
  double rho = 0, momentum = 0;
  for (int q = 0; q < Q; ++q) {
    double f = fields.f[q][y * NX + x];
    rho += f, momentum += c_x[q] * f;
  }
  ux[y * NX + x] = momentum / rho + kForce / (2 * rho);
  atomicAdd(mass, rho);
}

int main() {
  const double weight[Q] = {4.0 / 9, 1.0 / 9, 1.0 / 9, 1.0 / 9, 1.0 / 9, 1.0 / 36, 1.0 / 36, 1.0 / 36, 1.0 / 36};
  const int ex[Q] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, ey[Q] = {0, 0, 1, 0, -1, 1, 1, -1, -1}, opposite[Q] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
  cudaMemcpyToSymbol(c_weight, weight, sizeof weight);
  cudaMemcpyToSymbol(c_x, ex, sizeof ex);
  cudaMemcpyToSymbol(c_y, ey, sizeof ey);
  cudaMemcpyToSymbol(c_opposite, opposite, sizeof opposite);
  Fields a, b;
  for (int q = 0; q < Q; ++q) {
    std::vector<double> start(NX * NY, weight[q]);
    for (Fields* g : {&a, &b}) {
      cudaMalloc(&g->f[q], NX * NY * sizeof(double));
      cudaMemcpy(g->f[q], start.data(), NX * NY * sizeof(double), cudaMemcpyHostToDevice);
    }
  }
  const dim3 block(4, 4), grid((NX + 3) / 4, (NY - 2 + 3) / 4);
  for (int step = 0; step < 6000; ++step) {
    collide_and_stream<<<grid, block>>>(a, b);
    std::swap(a, b);
  }
  double *d_u, *d_mass, u[NX * NY], mass;
  cudaMalloc(&d_u, sizeof u);
  cudaMalloc(&d_mass, sizeof mass);
  cudaMemset(d_mass, 0, sizeof mass);
  velocity<<<NY - 2, NX>>>(a, d_u, d_mass);
  cudaMemcpy(u, d_u, sizeof u, cudaMemcpyDeviceToHost);
  cudaMemcpy(&mass, d_mass, sizeof mass, cudaMemcpyDeviceToHost);
  if (cudaError_t e = cudaGetLastError()) return std::printf("FAIL: %s\n", cudaGetErrorString(e)), 1;
  if (std::fabs(mass - NX * (NY - 2)) > 1e-9) return std::printf("FAIL: mass %.12f\n", mass), 1;
  const double viscosity = (kTau - 0.5) / 3, height = NY - 2;
  for (int y = 1; y < NY - 1; ++y) {
    double from_wall = y - 0.5, want = kForce / (2 * viscosity) * from_wall * (height - from_wall);
    for (int x = 0; x < NX; ++x)
      if (std::fabs(u[y * NX + x] - want) > 0.01 * want + 2e-6) return std::printf("FAIL: u(%d, %d) = %g, not %g\n", x, y, u[y * NX + x], want), 1;
  }
  std::puts("PASS");
}
