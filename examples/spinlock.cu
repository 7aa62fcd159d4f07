// spinlock: threads of one warp wait for each other, which ends only if all of them make progress.
//
//   ./ws run examples/spinlock.cu
//
// Before Volta, the threads of a warp shared one program counter: the lanes that spin in the loop below kept the
// warp there for ever, while the lane that holds the lock waited for them to finish.  Since Volta every thread is
// scheduled on its own, and the loop ends.  The emulator promises the same.
//
// The fences matter too: what is written under the lock must be visible before the lock is free, and what is
// read under it must not have been read earlier.

#include "check.h"

struct Account {
  int lock;
  int balance;
  int transfers;
};

__device__ void acquire(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
}

__device__ void release(int* lock) {
  __threadfence();
  atomicExch(lock, 0);
}

// Every thread moves money between two accounts.  It needs both locks, and always takes the one with the smaller
// index first: if one thread took A then B and another B then A, each could hold what the other waits for.
__global__ void transfer(int accounts, volatile Account* account) {
  const unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
  const int from = me * 7 % accounts, to = (me * 13 + 5) % accounts;
  if (from == to) return;
  const int first = min(from, to), second = max(from, to);
  acquire(const_cast<int*>(&account[first].lock));
  acquire(const_cast<int*>(&account[second].lock));
  account[from].balance -= me % 10;
  account[to].balance += me % 10;
  account[from].transfers++;
  account[to].transfers++;
  release(const_cast<int*>(&account[second].lock));
  release(const_cast<int*>(&account[first].lock));
}

int main() {
  const int accounts = 24, blocks = 8, threads = 96;
  std::vector<Account> before(accounts, Account{0, 1000, 0}), expected = before;
  for (int me = 0; me < blocks * threads; me++) {
    const int from = me * 7 % accounts, to = (me * 13 + 5) % accounts;
    if (from == to) continue;
    expected[from].balance -= me % 10;
    expected[to].balance += me % 10;
    expected[from].transfers++;
    expected[to].transfers++;
  }

  DeviceArray<Account> device_accounts(before);
  transfer<<<blocks, threads>>>(accounts, device_accounts.data());
  CHECK_KERNEL();

  const std::vector<Account> after = device_accounts.to_host();
  for (int i = 0; i < accounts; i++) {
    if (after[i].balance != expected[i].balance || after[i].transfers != expected[i].transfers || after[i].lock != 0) {
      std::printf("FAIL: account %d has %d after %d transfers (lock %d), not %d after %d\n", i, after[i].balance,
                  after[i].transfers, after[i].lock, expected[i].balance, expected[i].transfers);
      return 1;
    }
  }
  std::printf("PASS: %d threads shared %d locked accounts\n", blocks * threads, accounts);
  return 0;
}
