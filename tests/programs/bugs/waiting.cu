// Threads that wait for what never comes: barriers, flags, locks, lanes, blocks.
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void half_at_the_barrier(int* data, int limit) {
  if (threadIdx.x < limit) {
    data[threadIdx.x] += 1;
    __syncthreads();  // only for some
    data[threadIdx.x] += data[(threadIdx.x + 1) % limit];
  }
  while (atomicAdd(&data[200], 0) == 0 && threadIdx.x >= limit) {
  }
  if (threadIdx.x < limit) atomicExch(&data[200], 1);
}

__global__ void barrier_in_a_loop(const int* rounds, int* out) {
  for (int k = 0; k < rounds[threadIdx.x / 32]; ++k) {
    __syncthreads();  // how often?
    out[threadIdx.x] += k;
  }
  if (threadIdx.x / 32 == 1)
    while (*static_cast<volatile int*>(&out[500]) == 0) {
    }
  out[500] = 1;
}

__global__ void named_barrier(int* data, int count) {
  if (threadIdx.x < 64) {
    data[threadIdx.x] = threadIdx.x;
    asm volatile("bar.sync 1, %0;" ::"r"(count) : "memory");
    data[threadIdx.x + 64] = data[63 - threadIdx.x];
  }
}

__global__ void odd_count(int* data, int count) {
  asm volatile("barrier.sync 2, %0;" ::"r"(count) : "memory");
  data[threadIdx.x] = 1;
}

__global__ void wait_for_flag(int* flag, int* out) {
  while (*static_cast<volatile int*>(flag) == 0) {
  }
  *out = 1;
}

__device__ int mutex;
__global__ void take_lock(int* counter, int limit) {
  while (atomicCAS(&mutex, 0, 1) != 0) {
  }
  __threadfence();
  int value = *static_cast<volatile int*>(counter);
  if (value >= limit) return;  // and the lock?
  *static_cast<volatile int*>(counter) = value + 1;
  __threadfence();
  atomicExch(&mutex, 0);
}

__device__ int locks[2];
__global__ void two_locks(int* arrived, bool same_order) {
  int first = same_order ? 0 : blockIdx.x, second = 1 - first;
  while (atomicCAS(&locks[first], 0, 1) != 0) {
  }
  if (!same_order) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < 2) {
    }
  }
  while (atomicCAS(&locks[second], 0, 1) != 0) {
  }
  atomicExch(&locks[second], 0);
  atomicExch(&locks[first], 0);
}

__global__ void mask_of_others(int* out, unsigned mask) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __shfl_sync(mask, threadIdx.x * 3, 15 - threadIdx.x);
  } else {
    while (*static_cast<volatile int*>(&out[3]) != 36) {
    }
    out[threadIdx.x] = 0;
  }
}

__global__ void grid_barrier(unsigned* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < gridDim.x) {
    }
  }
  __syncthreads();
}

__global__ void chain(int* done, int step) {
  // Block b waits for its neighbour.
  int wait_for = blockIdx.x + step;
  if (threadIdx.x == 0 && wait_for >= 0 && (step < 0 || wait_for <= gridDim.x))
    while (atomicAdd(&done[wait_for], 0) == 0) {
    }
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(&done[blockIdx.x], 1);
}

template <class T> T* device(int n) {
  T* p;
  cudaMalloc(&p, n * sizeof(T));
  cudaMemset(p, 0, n * sizeof(T));
  return p;
}

int run_case(const char* argument) {
  char name[64] = "";
  strncpy(name, argument, sizeof name - 1);
  char* end = strstr(name, "_right");
  const bool right = end != nullptr;
  if (right) *end = 0;
  auto is = [&](const char* what) { return !strcmp(name, what); };
  if (is("divergent_barrier")) {
    half_at_the_barrier<<<1, 96>>>(device<int>(256), right ? 96 : 40);
  } else if (is("barrier_in_a_loop")) {
    int h[2] = {3, right ? 3 : 2}, *rounds = device<int>(2);
    cudaMemcpy(rounds, h, sizeof h, cudaMemcpyHostToDevice);
    barrier_in_a_loop<<<1, 64>>>(rounds, device<int>(512));
  } else if (is("named_barrier")) {
    named_barrier<<<1, 128>>>(device<int>(128), right ? 64 : 128);
  } else if (is("odd_count")) {
    odd_count<<<1, 64>>>(device<int>(64), right ? 64 : 50);
  } else if (is("count_of_more_than_there_are")) {
    odd_count<<<1, 64>>>(device<int>(64), right ? 64 : 96);
  } else if (is("flag_never_set")) {
    int one = 1, *flag = device<int>(1);
    if (right) cudaMemcpy(flag, &one, sizeof one, cudaMemcpyHostToDevice);
    wait_for_flag<<<1, 32>>>(flag, device<int>(1));
  } else if (is("lock_not_released")) {
    take_lock<<<2, 64>>>(device<int>(1), right ? 1000 : 100);
  } else if (is("two_locks")) {
    two_locks<<<2, 1>>>(device<int>(1), right);
  } else if (is("lanes_elsewhere")) {
    mask_of_others<<<1, 32>>>(device<int>(32), right ? 0xffff : 0xffffffff);
  } else if (is("grid_too_large")) {
    int sms, per_sm;
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, grid_barrier, 1024, 0);
    grid_barrier<<<right ? sms * per_sm : sms * per_sm + 1, 1024>>>(device<unsigned>(1));
  } else if (is("block_waits_for_nobody")) {
    chain<<<5, 32>>>(device<int>(8), right ? -1 : 1);
  } else {
    std::fprintf(stderr, "no such case: %s\n", name);
    return 2;
  }
  cudaError_t launch = cudaGetLastError(), run = cudaDeviceSynchronize();
  std::puts(cudaGetErrorName(launch ? launch : run));
  return right && (launch || run);
}

int main(int argc, char** argv) {
  int worst = 0;
  for (int i = 1; i < argc; ++i)
    if (int status = run_case(argv[i])) worst = status;
  return worst;
}
