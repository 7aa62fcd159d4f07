// Concurrent data structures: a ticket lock, a lock per bucket, an open-addressing hash table, a lock-free stack with
// counted pointers, a queue from producer blocks to consumer blocks, a work list that grows while it is worked on.
#include <cstdio>
#include <cstdlib>

#define FAIL(...) do { std::printf("FAIL: " __VA_ARGS__); std::puts(""); std::exit(1); } while (0)

struct TicketLock {
  unsigned next, serving;
  __device__ void lock() {
    unsigned mine = atomicAdd(&next, 1);
    while (*reinterpret_cast<volatile unsigned*>(&serving) != mine) __nanosleep(20);
    __threadfence();
  }
  __device__ void unlock() {
    __threadfence();
    atomicAdd(&serving, 1);
  }
};

__global__ void critical(TicketLock* lock, volatile int* shared, int rounds) {
  for (int r = 0; r < rounds; ++r) {
    lock->lock();
    shared[0] = shared[0] + 1;
    shared[1] = shared[1] * 3 + 1;
    lock->unlock();
  }
}

// Keys to counts; 0 is "empty".
constexpr unsigned kSlots = 1024;
__device__ unsigned slot_of(unsigned key) { return key * 2654435761u >> 22; }
__global__ void insert(unsigned* keys, unsigned* counts, const unsigned* input, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned key = input[i], s = slot_of(key);
    for (;; s = (s + 1) % kSlots) {
      unsigned old = atomicCAS(&keys[s], 0, key);
      if (old == 0 || old == key) break;
    }
    atomicAdd(&counts[s], 1);
  }
}
__global__ void look_up(const unsigned* keys, const unsigned* counts, int n, unsigned* out) {
  int i = threadIdx.x;
  if (i >= n) return;
  unsigned key = i + 1, s = slot_of(key);
  while (keys[s] != key && keys[s] != 0) s = (s + 1) % kSlots;
  out[i] = keys[s] == key ? counts[s] : 0;
}

// A stack of node numbers; the upper half of the head counts changes.
struct Stack {
  unsigned long long head;
  int next[256];
};
__device__ void push(Stack* s, int node) {
  unsigned long long old = *const_cast<volatile unsigned long long*>(&s->head), mine;
  do {
    *const_cast<volatile int*>(&s->next[node]) = static_cast<int>(old & 0xffffffff) - 1;
    __threadfence();
    mine = (old >> 32) + 1 << 32 | (node + 1);
    unsigned long long seen = atomicCAS(&s->head, old, mine);
    if (seen == old) return;
    old = seen;
  } while (true);
}
__device__ int pop(Stack* s) {
  unsigned long long old = atomicAdd(&s->head, 0ull);
  while (old & 0xffffffff) {
    int node = static_cast<int>(old & 0xffffffff) - 1;
    unsigned long long mine = (old >> 32) + 1 << 32 | (*const_cast<volatile int*>(&s->next[node]) + 1);
    unsigned long long seen = atomicCAS(&s->head, old, mine);
    if (seen == old) return node;
    old = seen;
  }
  return -1;
}
__global__ void juggle(Stack* s, int* owners, int* errors) {
  for (int round = 0; round < 5; ++round) {
    int node = pop(s);
    if (node < 0) continue;
    if (atomicAdd(&owners[node], 1) != 0) atomicAdd(errors, 1);
    atomicSub(&owners[node], 1);
    push(s, node);
  }
}

// Half the blocks produce, half consume, through a ring with a flag a slot.
constexpr int kRing = 32;
struct Ring {
  unsigned head, tail;
  int values[kRing];
  volatile unsigned turn[kRing];  // even: free, odd: filled
};
__global__ void producers_consumers(Ring* ring, int each, unsigned long long* sum) {
  const int half = gridDim.x / 2;
  for (int i = 0; i < each; ++i) {
    if (blockIdx.x < half) {
      unsigned ticket = atomicAdd(&ring->head, 1), slot = ticket % kRing, round = ticket / kRing;
      while (ring->turn[slot] != 2 * round) {
      }
      __threadfence();
      *const_cast<volatile int*>(&ring->values[slot]) = (blockIdx.x * blockDim.x + threadIdx.x) * each + i;
      __threadfence();
      ring->turn[slot] = 2 * round + 1;
    } else {
      unsigned ticket = atomicAdd(&ring->tail, 1), slot = ticket % kRing, round = ticket / kRing;
      while (ring->turn[slot] != 2 * round + 1) {
      }
      __threadfence();
      atomicAdd(sum, static_cast<unsigned long long>(*const_cast<volatile int*>(&ring->values[slot])));
      __threadfence();
      ring->turn[slot] = 2 * round + 2;
    }
  }
}

// Threads take numbers and put back smaller ones until all are 1.
__global__ void work_list(int* list, int* taken, int* size, int* done, int total, unsigned long long* ones) {
  while (*const_cast<volatile int*>(done) < total) {
    int available = *const_cast<volatile int*>(size), mine = *const_cast<volatile int*>(taken);
    if (mine >= available || atomicCAS(taken, mine, mine + 1) != mine) continue;
    int n;
    while ((n = atomicAdd(&list[mine], 0)) == 0) {
    }
    if (n == 1) {
      atomicAdd(ones, 1ull);
    } else {
      int at = atomicAdd(size, 2);
      atomicExch(&list[at], n / 2);
      atomicExch(&list[at + 1], n - n / 2);
    }
    atomicAdd(done, 1);
  }
}

int main() {
  TicketLock* lock;
  int *shared, h[2] = {0, 0};
  cudaMalloc(&lock, sizeof *lock);
  cudaMalloc(&shared, sizeof h);
  cudaMemset(lock, 0, sizeof *lock);
  cudaMemset(shared, 0, sizeof h);
  critical<<<4, 48>>>(lock, shared, 3);
  cudaMemcpy(h, shared, sizeof h, cudaMemcpyDeviceToHost);
  unsigned want = 0;
  for (int i = 0; i < 4 * 48 * 3; ++i) want = want * 3 + 1;
  if (h[0] != 4 * 48 * 3 || h[1] != static_cast<int>(want)) FAIL("ticket lock: %d", h[0]);

  const int n = 6000;
  static unsigned input[n], counts[600], got[600];
  for (int i = 0; i < n; ++i) counts[(input[i] = 1 + i * 7 % 300 * (i % 3) % 600) - 1]++;
  unsigned *d_input, *keys, *d_counts, *d_got;
  cudaMalloc(&d_input, sizeof input);
  cudaMalloc(&keys, kSlots * 4);
  cudaMalloc(&d_counts, kSlots * 4);
  cudaMalloc(&d_got, sizeof got);
  cudaMemset(keys, 0, kSlots * 4);
  cudaMemset(d_counts, 0, kSlots * 4);
  cudaMemcpy(d_input, input, sizeof input, cudaMemcpyHostToDevice);
  insert<<<5, 96>>>(keys, d_counts, d_input, n);
  look_up<<<1, 600>>>(keys, d_counts, 600, d_got);
  cudaMemcpy(got, d_got, sizeof got, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 600; ++i)
    if (got[i] != counts[i]) FAIL("hash table: %d occurs %u times, not %u", i + 1, got[i], counts[i]);

  static Stack s;
  for (int i = 0; i < 40; ++i) s.next[i] = i - 1;
  s.head = 40;
  Stack* d_s;
  int *owners, errors[257];
  cudaMalloc(&d_s, sizeof s);
  cudaMalloc(&owners, sizeof errors);
  cudaMemcpy(d_s, &s, sizeof s, cudaMemcpyHostToDevice);
  cudaMemset(owners, 0, sizeof errors);
  juggle<<<4, 64>>>(d_s, owners, owners + 256);
  cudaMemcpy(&s, d_s, sizeof s, cudaMemcpyDeviceToHost);
  cudaMemcpy(errors, owners, sizeof errors, cudaMemcpyDeviceToHost);
  int count = 0;
  for (int node = int(s.head & 0xffffffff) - 1; node >= 0 && count < 100; node = s.next[node]) ++count;
  if (count != 40 || errors[256]) FAIL("stack of %d, %d errors", count, errors[256]);

  Ring* ring;
  unsigned long long *d_sum, sum = 0;
  cudaMalloc(&ring, sizeof *ring);
  cudaMalloc(&d_sum, 8);
  cudaMemset(ring, 0, sizeof *ring);
  cudaMemset(d_sum, 0, 8);
  producers_consumers<<<4, 32>>>(ring, 6, d_sum);
  cudaMemcpy(&sum, d_sum, 8, cudaMemcpyDeviceToHost);
  if (sum != 64ull * 6 * (64 * 6 - 1) / 2) FAIL("ring: %llu", sum);

  int *list, *numbers, start = 200, one = 1;
  cudaMalloc(&list, 400 * 4);
  cudaMalloc(&numbers, 12);
  cudaMemset(list, 0, 400 * 4);
  cudaMemset(numbers, 0, 12);
  cudaMemset(d_sum, 0, 8);
  cudaMemcpy(list, &start, 4, cudaMemcpyHostToDevice);
  cudaMemcpy(numbers + 1, &one, 4, cudaMemcpyHostToDevice);
  work_list<<<3, 32>>>(list, numbers, numbers + 1, numbers + 2, 399, d_sum);
  cudaMemcpy(&sum, d_sum, 8, cudaMemcpyDeviceToHost);
  if (sum != 200) FAIL("work list: %llu", sum);
  if (cudaError_t e = cudaGetLastError()) FAIL("%s", cudaGetErrorString(e));
  std::puts("PASS");
}
