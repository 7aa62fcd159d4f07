// Graphs node by node, executable graphs and their launch.
#include <algorithm>

#include "graph.h"

namespace cudart {
namespace {

template <class F> cudaError_t on_graph(cudaGraph_t graph, F f) {
  return on_device([&](State& s) { return s.graphs.count(graph) ? f(s) : cudaErrorInvalidValue; });
}

bool is_node(State& s, cudaGraphNode_t node) {
  if (!node) return false;
  for (Graph* g : s.graphs)
    for (auto& n : g->nodes)
      if (n.get() == node) return true;
  return false;
}

template <class F> cudaError_t on_node(cudaGraphNode_t node, cudaGraphNodeType type, F f) {
  return on_device([&](State& s) { return is_node(s, node) && node->type == type ? f(s) : cudaErrorInvalidValue; });
}

// The copy of a node in an executable graph.
Node* find(State& s, GraphExec* exec, const Node* original) {
  if (!s.graph_execs.count(exec)) return nullptr;
  for (auto& n : exec->graph.nodes)
    if (n->original == original) return n.get();
  return nullptr;
}

template <class F> cudaError_t on_exec(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeType type, F f) {
  return on_device([&](State& s) {
    Node* n = find(s, exec, node);
    return n && n->type == type ? f(s, *n) : cudaErrorInvalidValue;
  });
}

// ---- order -----------------------------------------------------------------------------------------------
// The nodes so that each comes after what it depends on; fewer than all if there is a cycle.
std::vector<const Node*> ordered(const Graph& g) {
  std::vector<const Node*> out;
  std::unordered_set<const Node*> done;
  for (bool more = true; more;) {
    more = false;
    for (auto& n : g.nodes) {
      if (done.count(n.get())) continue;
      if (std::all_of(n->after.begin(), n->after.end(), [&](Node* d) { return done.count(d); })) {
        done.insert(n.get());
        out.push_back(n.get());
        more = true;
      }
    }
  }
  return out;
}

void copy_into(Graph& to, const std::vector<const Node*>& nodes) {
  std::unordered_map<const Node*, Node*> copies;
  for (const Node* n : nodes) {
    to.nodes.push_back(std::make_unique<Node>(*n));
    Node& c = *to.nodes.back();
    c.graph = &to;
    c.original = n;
    for (Node*& d : c.after) d = copies[d];
    copies[n] = &c;
  }
}

// ---- doing it --------------------------------------------------------------------------------------------
cudaError_t perform(State& s, const Graph& g);

cudaError_t perform(State& s, const Node& n) {
  if (!n.enabled) return cudaSuccess;
  switch (n.type) {
    case cudaGraphNodeTypeKernel: return perform_launch(s, n.kernel);
    case cudaGraphNodeTypeHost:
      call_back(s, [&] { n.host.fn(n.host.userData); });
      return cudaSuccess;
    case cudaGraphNodeTypeGraph: return perform(s, *n.child);
    case cudaGraphNodeTypeEventRecord:
      n.event->recorded = true;
      n.event->when = std::chrono::steady_clock::now();
      return cudaSuccess;
    default: return n.work ? n.work(s) : cudaSuccess;
  }
}

cudaError_t perform(State& s, const Graph& g) {
  for (const Node* n : ordered(g)) {
    TRY(perform(s, *n));
    if (s.fault) return cudaSuccess;  // the next call learns of it
  }
  return cudaSuccess;
}

// ---- nodes -----------------------------------------------------------------------------------------------
template <class F>
cudaError_t add_node(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count, cudaGraphNodeType type, F fill) {
  return on_graph(graph, [&](State& s) {
    if (!out || (count && !after)) return cudaErrorInvalidValue;
    auto node = std::make_unique<Node>();
    node->graph = graph;
    node->type = type;
    for (size_t i = 0; i < count; ++i) {
      bool twice = std::find(node->after.begin(), node->after.end(), after[i]) != node->after.end();
      if (!is_node(s, after[i]) || after[i]->graph != graph || twice) return cudaErrorInvalidValue;
      node->after.push_back(after[i]);
    }
    TRY(fill(s, *node));
    *out = node.get();
    graph->nodes.push_back(std::move(node));
    return cudaSuccess;
  });
}

cudaError_t set_kernel(State& s, Node& n, const cudaKernelNodeParams* p) {
  if (!p || p->extra) return cudaErrorInvalidValue;
  cudaError_t error;
  Kernel* k = find_kernel(s, p->func, error);
  if (!k) return error;
  KernelWork work;
  work.function = p->func;
  TRY(prepare_launch(s, *k, p->gridDim, p->blockDim, p->sharedMemBytes, p->kernelParams, n.kernel.config.cooperative, work));
  n.kernel = std::move(work);
  return cudaSuccess;
}

cudaError_t set_copy(Node& n, const cudaMemcpy3DParms* p) {
  if (!p) return cudaErrorInvalidValue;
  n.copy = *p;
  n.work = [copy = *p](State&) { return copy_box(copy); };
  return cudaSuccess;
}

cudaError_t set_bytes(Node& n, void* to, const void* from, size_t count, cudaMemcpyKind kind) {
  if (!to || !from || !count) return cudaErrorInvalidValue;
  n.copy = {};
  n.copy.srcPtr = {const_cast<void*>(from), count, count, 1};
  n.copy.dstPtr = {to, count, count, 1};
  n.copy.extent = {count, 1, 1};
  n.copy.kind = kind;
  n.work = [=](State&) { return copy_bytes(to, from, count, kind); };
  return cudaSuccess;
}

cudaError_t set_fill(Node& n, const cudaMemsetParams* p) {
  if (!p || !p->dst || !p->width || !p->height || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
    return cudaErrorInvalidValue;
  n.fill = *p;
  n.work = [fill = *p](State&) { return fill_elements(fill); };
  return cudaSuccess;
}

cudaError_t set_host(Node& n, const cudaHostNodeParams* p) {
  if (!p || !p->fn) return cudaErrorInvalidValue;
  n.host = *p;
  return cudaSuccess;
}

cudaError_t set_child(State& s, Node& n, Graph* child) {
  if (!s.graphs.count(child) || child == n.graph) return cudaErrorInvalidValue;
  n.child = std::make_shared<Graph>();
  copy_into(*n.child, ordered(*child));
  return cudaSuccess;
}

// Gives a list back as the API does: how many there are, or as many as there is room for.
cudaError_t give(const std::vector<Node*>& found, cudaGraphNode_t* out, size_t* count) {
  if (!count) return cudaErrorInvalidValue;
  if (out) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < found.size() ? found[i] : nullptr;
    *count = std::min(*count, found.size());
  } else {
    *count = found.size();
  }
  return cudaSuccess;
}

std::vector<Node*> dependents(const Node* node) {
  std::vector<Node*> out;
  for (auto& n : node->graph->nodes)
    if (std::find(n->after.begin(), n->after.end(), node) != n->after.end()) out.push_back(n.get());
  return out;
}

cudaError_t instantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long flags) {
  return on_graph(graph, [&](State& s) {
    if (!out || flags > 15) return cudaErrorInvalidValue;
    std::vector<const Node*> order = ordered(*graph);
    if (order.size() != graph->nodes.size()) return cudaErrorInvalidValue;
    auto exec = std::make_unique<GraphExec>();
    copy_into(exec->graph, order);
    exec->flags = flags;
    *out = exec.release();
    s.graph_execs.insert(*out);
    return cudaSuccess;
  });
}

// The new parameters of a graph of the same shape.
cudaGraphExecUpdateResult update(GraphExec& exec, const std::vector<const Node*>& order, const Node*& wrong) {
  if (order.size() != exec.graph.nodes.size()) return cudaGraphExecUpdateErrorTopologyChanged;
  std::unordered_map<const Node*, size_t> place, old;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    old[exec.graph.nodes[i].get()] = i;
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const Node &a = *exec.graph.nodes[i], &b = *order[i];
    wrong = &b;
    if (a.type != b.type) return cudaGraphExecUpdateErrorNodeTypeChanged;
    std::vector<size_t> x, y;
    for (Node* d : a.after) x.push_back(old[d]);
    for (Node* d : b.after) y.push_back(place[d]);
    std::sort(x.begin(), x.end());
    std::sort(y.begin(), y.end());
    if (x != y) return cudaGraphExecUpdateErrorTopologyChanged;
  }
  wrong = nullptr;
  Graph fresh;
  copy_into(fresh, order);
  for (size_t i = 0; i < order.size(); ++i) {
    fresh.nodes[i]->original = exec.graph.nodes[i]->original;
    fresh.nodes[i]->graph = &exec.graph;
  }
  exec.graph.nodes = std::move(fresh.nodes);
  return cudaGraphExecUpdateSuccess;
}

}  // namespace

void destroy_graphs(State& s) {
  for (Stream* stream : s.streams) stream->capture.reset();
  s.captures.clear();
  for (Graph* g : s.graphs) delete g;
  for (GraphExec* e : s.graph_execs) delete e;
  s.graphs.clear();
  s.graph_execs.clear();
}

}  // namespace cudart

using namespace cudart;

// ---- graphs ----------------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return on_device([&](State& s) {
    if (!graph || flags) return cudaErrorInvalidValue;
    *graph = new Graph;
    s.graphs.insert(*graph);
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return on_graph(graph, [&](State& s) {
    s.graphs.erase(graph);
    delete graph;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return on_graph(graph, [&](State& s) {
    if (!clone) return cudaErrorInvalidValue;
    *clone = new Graph;
    copy_into(**clone, ordered(*graph));
    s.graphs.insert(*clone);
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
  return on_graph(clone, [&](State&) {
    for (auto& n : clone->nodes)
      if (node && n->original == original) return *node = n.get(), cudaSuccess;
    return cudaErrorInvalidValue;
  });
}

CUDA_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return on_graph(graph, [&](State&) {
    std::vector<Node*> all;
    for (auto& n : graph->nodes) all.push_back(n.get());
    return give(all, nodes, count);
  });
}

CUDA_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return on_graph(graph, [&](State&) {
    std::vector<Node*> roots;
    for (auto& n : graph->nodes)
      if (n->after.empty()) roots.push_back(n.get());
    return give(roots, nodes, count);
  });
}

CUDA_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, void*, size_t* count) {
  return on_graph(graph, [&](State&) {
    if (!count || !from != !to) return cudaErrorInvalidValue;
    std::vector<Node*> a, b;
    for (auto& n : graph->nodes)
      for (Node* d : n->after) a.push_back(d), b.push_back(n.get());
    size_t room = *count;
    TRY(give(a, from, count));
    return give(b, to, from ? &room : count);
  });
}

CUDA_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return on_device([&](State& s) {
    if (!type || !is_node(s, node)) return cudaErrorInvalidValue;
    *type = node->type;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, void*, size_t* count) {
  return on_device([&](State& s) { return is_node(s, node) ? give(node->after, nodes, count) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, void*, size_t* count) {
  return on_device([&](State& s) { return is_node(s, node) ? give(dependents(node), nodes, count) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, const void*,
                                              size_t count) {
  return on_graph(graph, [&](State& s) {
    for (size_t i = 0; i < count; ++i) {
      if (!from || !to || !is_node(s, from[i]) || !is_node(s, to[i]) || from[i] == to[i]) return cudaErrorInvalidValue;
      if (from[i]->graph != graph || to[i]->graph != graph) return cudaErrorInvalidValue;
      std::vector<Node*>& after = to[i]->after;
      if (std::find(after.begin(), after.end(), from[i]) != after.end()) return cudaErrorInvalidValue;
      after.push_back(from[i]);
    }
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, const void*,
                                                 size_t count) {
  return on_graph(graph, [&](State& s) {
    for (size_t i = 0; i < count; ++i) {
      if (!from || !to || !is_node(s, to[i])) return cudaErrorInvalidValue;
      std::vector<Node*>& after = to[i]->after;
      auto found = std::find(after.begin(), after.end(), from[i]);
      if (found == after.end()) return cudaErrorInvalidValue;
      after.erase(found);
    }
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return on_device([&](State& s) {
    if (!is_node(s, node)) return cudaErrorInvalidValue;
    for (Node* n : dependents(node)) n->after.erase(std::find(n->after.begin(), n->after.end(), node));
    auto& all = node->graph->nodes;
    all.erase(std::find_if(all.begin(), all.end(), [&](auto& n) { return n.get() == node; }));
    return cudaSuccess;
  });
}

// ---- nodes -----------------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                            const cudaKernelNodeParams* p) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeKernel, [&](State& s, Node& n) { return set_kernel(s, n, p); });
}

CUDA_API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* p) {
  return on_node(node, cudaGraphNodeTypeKernel, [&](State&) {
    if (!p) return cudaErrorInvalidValue;
    KernelWork& w = node->kernel;
    // The arguments belong to the node, and so must the list of them; a call further on may overwrite it.
    static thread_local std::vector<void*> list;
    list.clear();
    for (const Parameter& q : w.kernel->parameters) list.push_back(&w.parameters[q.offset]);
    const ws_launch_config& c = w.config;
    *p = {const_cast<void*>(w.function), {c.grid[0], c.grid[1], c.grid[2]}, {c.block[0], c.block[1], c.block[2]},
          c.dynamic_shared, list.data(), nullptr};
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* p) {
  return on_node(node, cudaGraphNodeTypeKernel, [&](State& s) { return set_kernel(s, *node, p); });
}

CUDA_API cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                            const cudaMemcpy3DParms* p) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy, [&](State&, Node& n) { return set_copy(n, p); });
}

CUDA_API cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count, void* to,
                                              const void* from, size_t bytes, cudaMemcpyKind kind) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy, [&](State&, Node& n) { return set_bytes(n, to, from, bytes, kind); });
}

CUDA_API cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* p) {
  return on_node(node, cudaGraphNodeTypeMemcpy, [&](State&) { return p ? (*p = node->copy, cudaSuccess) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* p) {
  return on_node(node, cudaGraphNodeTypeMemcpy, [&](State&) { return set_copy(*node, p); });
}

CUDA_API cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return on_node(node, cudaGraphNodeTypeMemcpy, [&](State&) { return set_bytes(*node, to, from, bytes, kind); });
}

CUDA_API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                            const cudaMemsetParams* p) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemset, [&](State&, Node& n) { return set_fill(n, p); });
}

CUDA_API cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* p) {
  return on_node(node, cudaGraphNodeTypeMemset, [&](State&) { return p ? (*p = node->fill, cudaSuccess) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* p) {
  return on_node(node, cudaGraphNodeTypeMemset, [&](State&) { return set_fill(*node, p); });
}

CUDA_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                          const cudaHostNodeParams* p) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeHost, [&](State&, Node& n) { return set_host(n, p); });
}

CUDA_API cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* p) {
  return on_node(node, cudaGraphNodeTypeHost, [&](State&) { return p ? (*p = node->host, cudaSuccess) : cudaErrorInvalidValue; });
}

CUDA_API cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return on_node(node, cudaGraphNodeTypeHost, [&](State&) { return set_host(*node, p); });
}

CUDA_API cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                                cudaGraph_t child) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeGraph, [&](State& s, Node& n) { return set_child(s, n, child); });
}

CUDA_API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeEmpty, [](State&, Node&) { return cudaSuccess; });
}

static cudaError_t add_event(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count, cudaEvent_t event,
                             cudaGraphNodeType type) {
  return add_node(node, graph, after, count, type, [&](State& s, Node& n) {
    if (!event || !s.events.count(event)) return cudaErrorInvalidValue;
    n.event = event;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                                 cudaEvent_t event) {
  return add_event(node, graph, after, count, event, cudaGraphNodeTypeEventRecord);
}

CUDA_API cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                               cudaEvent_t event) {
  return add_event(node, graph, after, count, event, cudaGraphNodeTypeWaitEvent);
}

// ---- executable graphs --------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return instantiate(exec, graph, flags);
}

CUDA_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return instantiate(exec, graph, flags);
}

CUDA_API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphInstantiateParams* p) {
  if (!p) return answer(cudaErrorInvalidValue);
  p->errNode_out = nullptr;
  p->result_out = cudaGraphInstantiateSuccess;
  return instantiate(exec, graph, p->flags);
}
CUDA_ALIAS(cudaGraphInstantiateWithParams_ptsz, cudaGraphInstantiateWithParams);

CUDA_API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return on_device([&](State& s) {
    if (!flags || !s.graph_execs.count(exec)) return cudaErrorInvalidValue;
    *flags = exec->flags;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return on_device([&](State& s) { return s.graph_execs.count(exec) && known(s, stream) ? cudaSuccess : cudaErrorInvalidValue; });
}
CUDA_ALIAS(cudaGraphUpload_ptsz, cudaGraphUpload);

CUDA_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return on_device([&](State& s) {
    if (!s.graph_execs.count(exec)) return cudaErrorInvalidValue;
    // In a stream that is captured it becomes a part of that graph, as it is now.
    auto now = std::make_shared<Graph>();
    copy_into(*now, ordered(exec->graph));
    return enqueue(s, stream, cudaGraphNodeTypeGraph, [now](State& t) { return perform(t, *now); });
  });
}
CUDA_ALIAS(cudaGraphLaunch_ptsz, cudaGraphLaunch);

CUDA_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return on_device([&](State& s) {
    if (!s.graph_execs.erase(exec)) return cudaErrorInvalidValue;
    delete exec;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return on_graph(graph, [&](State& s) {
    if (!s.graph_execs.count(exec)) return cudaErrorInvalidValue;
    const Node* wrong = nullptr;
    cudaGraphExecUpdateResult result = update(*exec, ordered(*graph), wrong);
    if (info) *info = {result, const_cast<Node*>(wrong), nullptr};
    return result == cudaGraphExecUpdateSuccess ? cudaSuccess : cudaErrorGraphExecUpdateFailure;
  });
}

CUDA_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaKernelNodeParams* p) {
  return on_exec(exec, node, cudaGraphNodeTypeKernel, [&](State& s, Node& n) { return set_kernel(s, n, p); });
}

CUDA_API cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms* p) {
  return on_exec(exec, node, cudaGraphNodeTypeMemcpy, [&](State&, Node& n) { return set_copy(n, p); });
}

CUDA_API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                                        cudaMemcpyKind kind) {
  return on_exec(exec, node, cudaGraphNodeTypeMemcpy, [&](State&, Node& n) { return set_bytes(n, to, from, bytes, kind); });
}

CUDA_API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams* p) {
  return on_exec(exec, node, cudaGraphNodeTypeMemset, [&](State&, Node& n) { return set_fill(n, p); });
}

CUDA_API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return on_exec(exec, node, cudaGraphNodeTypeHost, [&](State&, Node& n) { return set_host(n, p); });
}

CUDA_API cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
  return on_exec(exec, node, cudaGraphNodeTypeGraph, [&](State& s, Node& n) { return set_child(s, n, child); });
}

CUDA_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return on_device([&](State& s) {
    Node* n = find(s, exec, node);
    bool may = n && (n->type == cudaGraphNodeTypeKernel || n->type == cudaGraphNodeTypeMemcpy || n->type == cudaGraphNodeTypeMemset);
    if (!may) return cudaErrorInvalidValue;
    n->enabled = enabled != 0;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return on_device([&](State& s) {
    Node* n = find(s, exec, node);
    if (!n || !enabled) return cudaErrorInvalidValue;
    *enabled = n->enabled;
    return cudaSuccess;
  });
}
