// Dynamic programming: 0/1 knapsack row by row, and the longest common subsequence along anti-diagonals.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

__global__ void knapsackRow(const int *previous, int *current, int capacity, int weight, int value)
{
    int w = blockIdx.x * blockDim.x + threadIdx.x;
    if (w > capacity) return;
    int best = previous[w];
    if (w >= weight) best = max(best, previous[w - weight] + value);
    current[w] = best;
}

// One block; thread i owns row i of the table and lags one step behind thread i - 1.
__global__ void lcs(const char *a, int na, const char *b, int nb, int *answer)
{
    extern __shared__ int diagonals[];
    int *older = diagonals, *old = older + na + 1, *now = old + na + 1;
    int row = threadIdx.x + 1;
    for (int i = threadIdx.x; i < 3 * (na + 1); i += blockDim.x) diagonals[i] = 0;
    __syncthreads();
    for (int step = 2; step <= na + nb; step++) {
        int column = step - row;
        if (row <= na && column >= 1 && column <= nb) {
            int value = a[row - 1] == b[column - 1] ? older[row - 1] + 1 : max(old[row - 1], old[row]);
            now[row] = value;
            if (row == na && column == nb) *answer = value;
        }
        __syncthreads();
        int *t = older; older = old; old = now; now = t;
    }
}

int main()
{
    const int items = 60, capacity = 1500;
    std::vector<int> weight(items), value(items), best(capacity + 1, 0);
    for (int i = 0; i < items; i++) {
        weight[i] = 20 + i * 37 % 91;
        value[i] = 10 + i * 53 % 97;
        for (int w = capacity; w >= weight[i]; w--) best[w] = std::max(best[w], best[w - weight[i]] + value[i]);
    }
    int *rows[2];
    for (int **r = rows; r < rows + 2; r++) cudaMalloc(r, (capacity + 1) * sizeof(int));
    cudaMemset(rows[0], 0, (capacity + 1) * sizeof(int));
    for (int i = 0; i < items; i++)
        knapsackRow<<<(capacity + 256) / 256, 256>>>(rows[i % 2], rows[(i + 1) % 2], capacity, weight[i], value[i]);
    std::vector<int> got(capacity + 1);
    cudaMemcpy(got.data(), rows[items % 2], got.size() * sizeof(int), cudaMemcpyDeviceToHost);
    if (got != best) { printf("FAIL: knapsack\n"); return 1; }

    std::string a, b;
    unsigned s = 6;
    for (int i = 0; i < 300; i++) a += "ACGT"[(s = s * 1664525u + 1013904223u) >> 30];
    for (int i = 0; i < 411; i++) b += "ACGT"[(s = s * 1664525u + 1013904223u) >> 30];
    std::vector<std::vector<int>> table(a.size() + 1, std::vector<int>(b.size() + 1, 0));
    for (size_t i = 1; i <= a.size(); i++)
        for (size_t j = 1; j <= b.size(); j++)
            table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : std::max(table[i - 1][j], table[i][j - 1]);
    char *da, *db;
    int *answer, length = -1;
    cudaMalloc(&da, a.size());
    cudaMalloc(&db, b.size());
    cudaMalloc(&answer, sizeof(int));
    cudaMemcpy(da, a.data(), a.size(), cudaMemcpyHostToDevice);
    cudaMemcpy(db, b.data(), b.size(), cudaMemcpyHostToDevice);
    lcs<<<1, 320, 3 * (a.size() + 1) * sizeof(int)>>>(da, a.size(), db, b.size(), answer);
    cudaMemcpy(&length, answer, sizeof(int), cudaMemcpyDeviceToHost);
    if (length != table.back().back()) { printf("FAIL: LCS %d, not %d (%s)\n", length, table.back().back(), cudaGetErrorString(cudaGetLastError())); return 1; }
    printf("PASS: knapsack %d, subsequence of %d\n", best[capacity], length);
    return 0;
}
