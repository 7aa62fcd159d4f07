// Capturing streams: what they are asked to do becomes nodes of a graph.  Which calls are refused meanwhile,
// with which error, and what then becomes of the capture is as an H200 answered (tests/cudart/golden/capture.cu).
#include <algorithm>

#include "graph.h"

namespace cudart {
namespace {

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;
unsigned long long capture_ids = 1;

bool real(cudaStream_t stream) { return reinterpret_cast<uintptr_t>(stream) > 2; }

Capture* capture_of(cudaStream_t stream) { return real(stream) ? stream->capture.get() : nullptr; }

cudaError_t invalidate(Capture& c, cudaError_t e) {
  c.valid = false;
  return e;
}

// A capture that the legacy stream would have to wait for.
Capture* blocking(State& s) {
  for (Capture* c : s.captures)
    for (auto& t : c->tails)
      if (!(t.first->flags & kStreamNonBlocking)) return c;
  return nullptr;
}

void add(std::vector<Node*>& to, const std::vector<Node*>& more) {
  for (Node* n : more)
    if (std::find(to.begin(), to.end(), n) == to.end()) to.push_back(n);
}

Node* append(Capture& c, cudaStream_t stream, cudaGraphNodeType type) {
  c.graph->nodes.push_back(std::make_unique<Node>());
  Node* n = c.graph->nodes.back().get();
  n->graph = c.graph;
  n->type = type;
  std::vector<Node*>& tail = c.tails[stream];
  n->after = tail;
  tail = {n};
  return n;
}

// For work of a stream: whether it is kept (in `node`) or to be done now.
cudaError_t place(State& s, cudaStream_t stream, cudaGraphNodeType type, Node*& node) {
  node = nullptr;
  if (!known(s, stream)) return cudaErrorInvalidResourceHandle;
  Capture* c = capture_of(stream);
  if (!c) return real(stream) ? cudaSuccess : capture_forbids_legacy(s);
  if (!c->valid) return cudaErrorStreamCaptureInvalidated;
  node = append(*c, stream, type);
  return cudaSuccess;
}

// The streams let go of a capture that has ended.
void finish(State& s, Capture& c) {
  c.ended = true;
  s.captures.erase(&c);
  std::shared_ptr<Capture> keep = c.origin->capture;
  for (auto& t : c.tails) t.first->capture.reset();
}

// Every node must come before the end of the stream where the capture began.
bool joined(const Capture& c) {
  std::unordered_set<const Node*> before;
  std::vector<const Node*> open(c.tails.at(c.origin).begin(), c.tails.at(c.origin).end());
  while (!open.empty()) {
    const Node* n = open.back();
    open.pop_back();
    if (before.insert(n).second) open.insert(open.end(), n->after.begin(), n->after.end());
  }
  for (auto& t : c.tails)
    for (const Node* n : t.second)
      if (!before.count(n)) return false;
  return true;
}

template <class F> cudaError_t on_capture(cudaStream_t stream, F f) {
  return on_device([&](State& s) { return known(s, stream) ? f(s) : cudaErrorInvalidResourceHandle; });
}

cudaError_t begin(State& s, cudaStream_t stream, Graph* graph, const std::vector<Node*>& after, cudaStreamCaptureMode mode) {
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
  if (!real(stream)) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture) return cudaErrorIllegalState;
  auto c = std::make_shared<Capture>();
  c->graph = graph;
  c->origin = stream;
  c->mode = mode;
  c->thread = std::this_thread::get_id();
  c->id = capture_ids++;
  c->tails[stream] = after;
  stream->capture = c;
  s.captures.insert(c.get());
  return cudaSuccess;
}

}  // namespace

bool capturing(State&, cudaStream_t stream) { return capture_of(stream) != nullptr; }

cudaError_t enqueue(State& s, cudaStream_t stream, cudaGraphNodeType type, Work work) {
  Node* n;
  TRY(place(s, stream, type, n));
  if (!n) return work(s);
  n->work = std::move(work);
  return cudaSuccess;
}

cudaError_t enqueue_kernel(State& s, cudaStream_t stream, KernelWork work) {
  Node* n;
  TRY(place(s, stream, cudaGraphNodeTypeKernel, n));
  if (!n) return perform_launch(s, work);
  n->kernel = std::move(work);
  return cudaSuccess;
}

cudaError_t enqueue_host(State& s, cudaStream_t stream, cudaHostFn_t function, void* data) {
  Node* n;
  TRY(place(s, stream, cudaGraphNodeTypeHost, n));
  if (n) n->host = {function, data};
  else call_back(s, [&] { function(data); });
  return cudaSuccess;
}

cudaError_t capture_forbids_legacy(State& s) {
  if (s.captures.empty()) return cudaSuccess;
  Capture* c = blocking(s);
  return c ? invalidate(*c, cudaErrorStreamCaptureImplicit) : cudaSuccess;
}

cudaError_t capture_forbids_wait(State& s, cudaStream_t stream) {
  if (!real(stream)) return capture_forbids_legacy(s);
  Capture* c = capture_of(stream);
  return c ? invalidate(*c, cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

cudaError_t capture_forbids_wait(State&, cudaEvent_t event) {
  Capture* c = event->capture.get();
  if (!c) return cudaSuccess;
  if (c->ended) return cudaErrorCapturedEvent;
  return c->valid ? invalidate(*c, cudaErrorCapturedEvent) : cudaErrorInvalidValue;
}

cudaError_t capture_forbids_wait(State& s) {
  for (Capture* c : s.captures) c->valid = false;
  return s.captures.empty() ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

cudaError_t capture_forbids_unsafe(State& s) {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t e = cudaSuccess;
  for (Capture* c : s.captures) {
    bool own = c->thread == std::this_thread::get_id();
    bool hit = c->mode == cudaStreamCaptureModeGlobal ? thread_mode == cudaStreamCaptureModeGlobal || own
                                                      : c->mode == cudaStreamCaptureModeThreadLocal && own;
    if (hit) e = invalidate(*c, cudaErrorStreamCaptureUnsupported);
  }
  return e;
}

cudaError_t capture_record(State& s, cudaEvent_t event, cudaStream_t stream, bool& captured) {
  Capture* c = capture_of(stream);
  captured = c != nullptr;
  if (!c) {
    if (!real(stream)) TRY(capture_forbids_legacy(s));
    event->capture.reset();
    event->nodes.clear();
    return cudaSuccess;
  }
  if (!c->valid) return cudaErrorStreamCaptureInvalidated;
  event->capture = stream->capture;
  event->nodes = c->tails[stream];
  return cudaSuccess;
}

cudaError_t capture_wait(State& s, cudaStream_t stream, cudaEvent_t event) {
  Capture* c = capture_of(stream);
  std::shared_ptr<Capture> from = event->capture;
  if (from && from->ended) from.reset();
  if (c && !c->valid) return cudaErrorStreamCaptureInvalidated;
  if (!from) return c && event->recorded ? invalidate(*c, cudaErrorStreamCaptureIsolation) : cudaSuccess;
  if (!from->valid) return cudaErrorStreamCaptureInvalidated;
  if (!real(stream)) return capture_forbids_legacy(s);
  if (c && c != from.get()) {
    from->valid = false;
    return invalidate(*c, cudaErrorStreamCaptureMerge);
  }
  stream->capture = from;
  add(from->tails[stream], event->nodes);
  return cudaSuccess;
}

void capture_ends_with(State& s, cudaStream_t stream) {
  Capture* c = capture_of(stream);
  if (!c) return;
  c->valid = false;
  if (c->origin == stream) finish(s, *c);
  else c->tails.erase(stream);
}

}  // namespace cudart

using namespace cudart;

CUDA_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return on_capture(stream, [&](State& s) {
    auto graph = std::make_unique<Graph>();
    TRY(begin(s, stream, graph.get(), {}, mode));
    s.graphs.insert(graph.release());
    return cudaSuccess;
  });
}
CUDA_ALIAS(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture);

CUDA_API cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* after, const void*,
                                                   size_t count, cudaStreamCaptureMode mode) {
  return on_capture(stream, [&](State& s) {
    if (!s.graphs.count(graph) || (count && !after)) return cudaErrorInvalidValue;
    return begin(s, stream, graph, std::vector<Node*>(after, after + count), mode);
  });
}
CUDA_ALIAS(cudaStreamBeginCaptureToGraph_ptsz, cudaStreamBeginCaptureToGraph);

CUDA_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
  return on_capture(stream, [&](State& s) {
    Capture* c = capture_of(stream);
    if (!out) return cudaErrorInvalidValue;
    if (!c) return cudaErrorIllegalState;
    if (c->origin != stream) return invalidate(*c, cudaErrorStreamCaptureUnmatched);
    if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id())
      return invalidate(*c, cudaErrorStreamCaptureWrongThread);
    cudaError_t e = !c->valid ? cudaErrorStreamCaptureInvalidated : !joined(*c) ? cudaErrorStreamCaptureUnjoined : cudaSuccess;
    *out = e ? nullptr : c->graph;
    if (e) {
      s.graphs.erase(c->graph);
      delete c->graph;
    }
    finish(s, *c);
    return e;
  });
}
CUDA_ALIAS(cudaStreamEndCapture_ptsz, cudaStreamEndCapture);

CUDA_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                              cudaGraph_t* graph, const cudaGraphNode_t** after, const void** edges, size_t* count) {
  return on_capture(stream, [&](State& s) {
    if (!status) return cudaErrorInvalidValue;
    if (!real(stream) && blocking(s)) return cudaErrorStreamCaptureImplicit;
    Capture* c = capture_of(stream);
    *status = !c ? cudaStreamCaptureStatusNone : c->valid ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
    if (!c || !c->valid) return cudaSuccess;
    if (id) *id = c->id;
    if (graph) *graph = c->graph;
    if (after) *after = c->tails[stream].data();
    if (edges) *edges = nullptr;
    if (count) *count = c->tails[stream].size();
    return cudaSuccess;
  });
}
CUDA_ALIAS(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo);

CUDA_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
CUDA_ALIAS(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing);

CUDA_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes, const void*, size_t count,
                                                         unsigned flags) {
  return on_capture(stream, [&](State&) {
    Capture* c = capture_of(stream);
    if (!c) return cudaErrorIllegalState;
    if (flags > 1 || (count && !nodes)) return cudaErrorInvalidValue;
    if (flags == 1) c->tails[stream].clear();  // instead of what there is, else in addition
    add(c->tails[stream], std::vector<Node*>(nodes, nodes + count));
    return cudaSuccess;
  });
}
CUDA_ALIAS(cudaStreamUpdateCaptureDependencies_ptsz, cudaStreamUpdateCaptureDependencies);

CUDA_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (!mode || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed) return answer(cudaErrorInvalidValue);
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}
