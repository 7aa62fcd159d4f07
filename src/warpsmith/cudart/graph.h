// Graphs: work that is put together first and launched later, from a stream that is captured or node by node.
#pragma once
#include <thread>

#include "runtime.h"

namespace cudart {

struct Node {
  Graph* graph = nullptr;
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  std::vector<Node*> after;     // what it depends on
  Work work;                    // of every type but kernel and graph
  KernelWork kernel;
  cudaMemcpy3DParms copy{};     // as given, for those who ask
  cudaMemsetParams fill{};
  cudaHostNodeParams host{};
  cudaEvent_t event = nullptr;
  std::shared_ptr<Graph> child;
  const Node* original = nullptr;  // in a clone and in an executable graph
  bool enabled = true;
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

struct GraphExec {
  Graph graph;                  // its nodes in an order in which they can be done
  unsigned long long flags = 0;
};

struct Capture {
  Graph* graph = nullptr;
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  unsigned long long id = 0;
  bool valid = true, ended = false;
  std::map<cudaStream_t, std::vector<Node*>> tails;  // of each stream that takes part: what its next node depends on
};

}  // namespace cudart
