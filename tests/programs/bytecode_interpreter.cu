// An interpreter for a small stack machine: every thread runs another program or other input through one big switch, with
// jumps, calls and memory of its own.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

enum Op : int32_t { PUSH, ADD, SUB, MUL, MOD, DUP, SWAP, OVER, POP, LOAD, STORE, JMP, JZ, LT, CALL, RET, HALT };

struct Machine {
  int32_t stack[24], memory[8], calls[8];
  int sp, cp;
  __host__ __device__ int32_t run(const int32_t* code, int32_t input, int* steps) {
    sp = cp = 0;
    for (int i = 0; i < 8; ++i) memory[i] = 0;
    stack[sp++] = input;
    int pc = 0;
    for (*steps = 0; *steps < 100000; ++*steps) {
      switch (code[pc++]) {
        case PUSH: stack[sp++] = code[pc++]; break;
        case ADD: --sp, stack[sp - 1] += stack[sp]; break;
        case SUB: --sp, stack[sp - 1] -= stack[sp]; break;
        case MUL: --sp, stack[sp - 1] *= stack[sp]; break;
        case MOD: --sp, stack[sp - 1] %= stack[sp]; break;
        case DUP: stack[sp] = stack[sp - 1], ++sp; break;
        case SWAP: {
          int32_t t = stack[sp - 1];
          stack[sp - 1] = stack[sp - 2], stack[sp - 2] = t;
          break;
        }
        case OVER: stack[sp] = stack[sp - 2], ++sp; break;
        case POP: --sp; break;
        case LOAD: stack[sp++] = memory[code[pc++]]; break;
        case STORE: memory[code[pc++]] = stack[--sp]; break;
        case JMP: pc = code[pc]; break;
        case JZ: pc = stack[--sp] == 0 ? code[pc] : pc + 1; break;
        case LT: --sp, stack[sp - 1] = stack[sp - 1] < stack[sp]; break;
        case CALL: calls[cp++] = pc + 1, pc = code[pc]; break;
        case RET: pc = calls[--cp]; break;
        case HALT: return stack[sp - 1];
      }
    }
    return -1;
  }
};

__global__ void interpret(const int32_t* code, const int* starts, int programs, int32_t* results, int* steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Machine machine;
  results[i] = machine.run(code + starts[i % programs], i / programs, &steps[i]);
}

int main() {
  std::vector<int32_t> code;
  std::vector<int> starts;
  auto program = [&](std::vector<int32_t> p) {
    starts.push_back(code.size());
    code.insert(code.end(), p.begin(), p.end());
  };
  // n! modulo 2^32
  program({STORE, 0, PUSH, 1, STORE, 1, /*6*/ LOAD, 0, JZ, 22, LOAD, 0, LOAD, 1, MUL, STORE, 1, LOAD, 0, PUSH, 1, JMP, 25, 0, 0, /*25*/ SUB, STORE, 0, JMP, 6});
  code[starts[0] + 9] = 30;
  code.insert(code.end(), {LOAD, 1, HALT});
  // Fibonacci
  program({STORE, 0, PUSH, 0, PUSH, 1, /*6*/ LOAD, 0, JZ, 20, SWAP, OVER, ADD, LOAD, 0, PUSH, 1, SUB, STORE, 0, /*20*/ 0, 0, 0});
  code.resize(starts[1] + 20);
  code.insert(code.end(), {JMP, 6, POP, HALT});
  code[starts[1] + 9] = 22;
  // the greatest common divisor of n + 12 and 18, by a subroutine
  program({PUSH, 12, ADD, PUSH, 18, CALL, 8, HALT, /*8*/ DUP, JZ, 16, SWAP, OVER, MOD, JMP, 8, /*16*/ POP, RET});
  // does not end
  program({PUSH, 1, POP, JMP, 0});

  const int n = 4 * 20;
  int32_t *d_code, *d_results, results[n];
  int *d_starts, *d_steps, steps[n];
  cudaMalloc(&d_code, code.size() * 4);
  cudaMalloc(&d_starts, starts.size() * 4);
  cudaMalloc(&d_results, sizeof results);
  cudaMalloc(&d_steps, sizeof steps);
  cudaMemcpy(d_code, code.data(), code.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(d_starts, starts.data(), starts.size() * 4, cudaMemcpyHostToDevice);
  interpret<<<2, 64>>>(d_code, d_starts, starts.size(), d_results, d_steps, n);
  cudaMemcpy(results, d_results, sizeof results, cudaMemcpyDeviceToHost);
  cudaMemcpy(steps, d_steps, sizeof steps, cudaMemcpyDeviceToHost);
  if (cudaError_t e = cudaGetLastError()) return std::printf("FAIL: %s\n", cudaGetErrorString(e)), 1;
  uint32_t factorial = 1, a = 0, b = 1;
  for (int k = 0; k < 20; ++k) {
    int x = k + 12, y = 18;
    while (y) {
      int t = x % y;
      x = y, y = t;
    }
    if (k) factorial *= k;
    const int32_t want[4] = {int32_t(factorial), int32_t(a), x, -1};
    for (int p = 0; p < 4; ++p) {
      int host_steps;
      Machine m;
      if (results[4 * k + p] != want[p] || m.run(&code[starts[p]], k, &host_steps) != want[p] || host_steps != steps[4 * k + p])
        return std::printf("FAIL: program %d of %d is %d in %d steps, not %d\n", p, k, results[4 * k + p], steps[4 * k + p], want[p]), 1;
    }
    uint32_t next = a + b;
    a = b, b = next;
  }
  std::puts("PASS");
}
