// Managed memory: a search tree built by the host with operator new of its own, searched and changed by kernels, read by
// the host again; and a managed variable.
#include <cstdio>
#include <cstdlib>
#include <string.h>

class Managed {
 public:
  void* operator new(size_t bytes) {
    void* p;
    if (cudaMallocManaged(&p, bytes)) abort();
    return p;
  }
  void operator delete(void* p) {
    cudaDeviceSynchronize();
    cudaFree(p);
  }
};

class Text : public Managed {  // a deep copy in managed memory
 public:
  explicit Text(const char* s) : length_(strlen(s)) {
    cudaMallocManaged(&data_, length_ + 1);
    memcpy(data_, s, length_ + 1);
  }
  Text(const Text&) = delete;
  ~Text() { cudaFree(data_); }
  __host__ __device__ char* c_str() const { return data_; }
  __host__ __device__ int size() const { return length_; }

 private:
  int length_;
  char* data_;
};

struct Node : Managed {
  int key;
  int visits = 0;
  Text name;
  Node *left = nullptr, *right = nullptr;
  Node(int key, const char* name) : key(key), name(name) {}
  ~Node() {
    delete left;
    delete right;
  }
  void insert(Node* other) {
    Node*& side = other->key < key ? left : right;
    if (side) side->insert(other);
    else side = other;
  }
};

__managed__ int missing = 0;
__device__ __managed__ unsigned letters[26];

__global__ void search(Node* root, const int* keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (Node* node = root; node; node = keys[i] < node->key ? node->left : node->right)
    if (node->key == keys[i]) {
      atomicAdd(&node->visits, 1);
      return;
    }
  atomicAdd(&missing, 1);
}

__global__ void shout(Node* node) {
  while (node) {
    for (int i = threadIdx.x; i < node->name.size(); i += blockDim.x) {
      char& c = node->name.c_str()[i];
      atomicAdd(&letters[c - 'a'], 1u);
      c += 'A' - 'a';
    }
    node = node->right;
  }
}

int main() {
  const char* names[] = {"warp", "weft", "loom", "shuttle", "heddle", "bobbin", "selvedge"};
  const int keys[] = {40, 20, 60, 10, 50, 70, 65};
  Node* root = new Node(keys[0], names[0]);
  for (int i = 1; i < 7; ++i) root->insert(new Node(keys[i], names[i]));
  int* queries;
  cudaMallocManaged(&queries, 1000 * sizeof(int));
  for (int i = 0; i < 1000; ++i) queries[i] = i % 80;
  cudaMemAdvise(queries, 1000 * sizeof(int), cudaMemAdviseSetReadMostly, cudaMemLocation{cudaMemLocationTypeDevice, 0});
  cudaMemPrefetchAsync(queries, 1000 * sizeof(int), cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, 0);
  search<<<4, 256>>>(root, queries, 1000);
  shout<<<1, 4>>>(root);
  if (cudaError_t e = cudaDeviceSynchronize()) return std::printf("%s\n", cudaGetErrorString(e)), 1;
  std::printf("%s %d, %s %d, %s %d, %s %d, missing %d\n", root->name.c_str(), root->visits, root->left->name.c_str(), root->left->visits,
              root->right->name.c_str(), root->right->visits, root->right->right->left->name.c_str(), root->right->right->left->visits, missing);
  std::printf("w %u, o %u, b %u, z %u\n", letters['w' - 'a'], letters['o' - 'a'], letters['b' - 'a'], letters[25]);
  missing = 0;  // the host writes, the next launch sees it
  search<<<1, 32>>>(root, queries, 32);
  cudaDeviceSynchronize();
  std::printf("missing %d\n", missing);
  delete root;
  cudaFree(queries);
  return cudaGetLastError();
}
