// Streams, events and host functions.  Everything is done when the call that asks for it returns, so
// every order that a program can ask for is kept; a stream never has work left.
#include "runtime.h"

namespace cudart {
namespace {

template <class F> cudaError_t on_stream(cudaStream_t stream, F f) {
  return on_device([&](State& s) { return known(s, stream) ? f(s) : cudaErrorInvalidResourceHandle; });
}

cudaError_t make_stream(cudaStream_t* out, unsigned flags, int priority) {
  return on_device([&](State& s) {
    if (!out || flags > kStreamNonBlocking) return cudaErrorInvalidValue;
    *out = new Stream{flags, std::max(-5, std::min(priority, 0)), s.stream_ids++};
    s.streams.insert(*out);
    return cudaSuccess;
  });
}

bool real(cudaStream_t stream) { return reinterpret_cast<uintptr_t>(stream) > 2; }

bool known(State& s, cudaEvent_t event) { return event && s.events.count(event); }

cudaError_t record(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return on_stream(stream, [&](State& s) {
    if (!known(s, event)) return cudaErrorInvalidResourceHandle;
    if (flags > 1) return cudaErrorInvalidValue;
    bool captured = false;
    TRY(capture_record(s, event, stream, captured));
    if (captured) return cudaSuccess;
    event->recorded = true;
    event->when = std::chrono::steady_clock::now();
    return cudaSuccess;
  });
}

}  // namespace

bool known(State& s, cudaStream_t stream) { return !real(stream) || s.streams.count(stream); }

}  // namespace cudart

using namespace cudart;

// ---- streams ---------------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make_stream(stream, 0, 0); }
CUDA_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) { return make_stream(stream, flags, 0); }
CUDA_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return make_stream(stream, flags, priority);
}

CUDA_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return on_stream(stream, [&](State& s) {
    if (!s.streams.count(stream)) return cudaErrorInvalidResourceHandle;
    capture_ends_with(s, stream);
    s.streams.erase(stream);
    delete stream;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return waiting([&](State& s) { return known(s, stream) ? capture_forbids_wait(s, stream) : cudaErrorInvalidResourceHandle; });
}
CUDA_ALIAS(cudaStreamSynchronize_ptsz, cudaStreamSynchronize);

CUDA_API cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return waiting([&](State& s) { return known(s, stream) ? capture_forbids_wait(s, stream) : cudaErrorInvalidResourceHandle; });
}
CUDA_ALIAS(cudaStreamQuery_ptsz, cudaStreamQuery);

CUDA_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return on_stream(stream, [&](State& s) {
    if (!known(s, event)) return cudaErrorInvalidResourceHandle;
    return flags > 1 ? cudaErrorInvalidValue : capture_wait(s, stream, event);
  });
}
CUDA_ALIAS(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent);

CUDA_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return on_stream(stream, [&](State&) {
    if (!flags) return cudaErrorInvalidValue;
    *flags = real(stream) ? stream->flags : 0;
    return cudaSuccess;
  });
}
CUDA_ALIAS(cudaStreamGetFlags_ptsz, cudaStreamGetFlags);

CUDA_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return on_stream(stream, [&](State&) {
    if (!priority) return cudaErrorInvalidValue;
    *priority = real(stream) ? stream->priority : 0;
    return cudaSuccess;
  });
}
CUDA_ALIAS(cudaStreamGetPriority_ptsz, cudaStreamGetPriority);

CUDA_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return on_stream(stream, [&](State&) {
    if (!id) return cudaErrorInvalidValue;
    *id = real(stream) ? stream->id : reinterpret_cast<uintptr_t>(stream) == 2 ? 2 : 1;
    return cudaSuccess;
  });
}
CUDA_ALIAS(cudaStreamGetId_ptsz, cudaStreamGetId);

CUDA_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return on_stream(stream, [&](State&) {
    if (!device) return cudaErrorInvalidValue;
    *device = 0;
    return cudaSuccess;
  });
}
CUDA_ALIAS(cudaStreamGetDevice_ptsz, cudaStreamGetDevice);

// ---- host functions --------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return on_device([&](State& s) {
    if (!function) return cudaErrorInvalidValue;
    return enqueue_host(s, stream, function, data);
  });
}
CUDA_ALIAS(cudaLaunchHostFunc_ptsz, cudaLaunchHostFunc);

CUDA_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned flags) {
  return on_stream(stream, [&](State& s) {
    if (!function || flags) return cudaErrorInvalidValue;
    TRY(capture_forbids_wait(s, stream));
    call_back(s, [&] { function(stream, cudaSuccess, data); });
    return cudaSuccess;
  });
}
CUDA_ALIAS(cudaStreamAddCallback_ptsz, cudaStreamAddCallback);

// ---- events ------------------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return on_device([&](State& s) {
    bool shared_without = (flags & kEventInterprocess) && !(flags & kEventDisableTiming);
    if (!event || flags > (kEventBlockingSync | kEventDisableTiming | kEventInterprocess) || shared_without) return cudaErrorInvalidValue;
    *event = new Event;
    (*event)->flags = flags;
    s.events.insert(*event);
    return cudaSuccess;
  });
}
CUDA_API cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

CUDA_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return on_device([&](State& s) {
    if (!s.events.erase(event)) return cudaErrorInvalidResourceHandle;
    delete event;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return record(event, stream, 0); }
CUDA_ALIAS(cudaEventRecord_ptsz, cudaEventRecord);

CUDA_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) { return record(event, stream, flags); }
CUDA_ALIAS(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags);

CUDA_API cudaError_t cudaEventQuery(cudaEvent_t event) {
  return on_device([&](State& s) { return known(s, event) ? capture_forbids_wait(s, event) : cudaErrorInvalidResourceHandle; });
}

CUDA_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return waiting([&](State& s) { return known(s, event) ? capture_forbids_wait(s, event) : cudaErrorInvalidResourceHandle; });
}

CUDA_API cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return on_device([&](State& s) {
    if (!ms) return cudaErrorInvalidValue;
    for (cudaEvent_t e : {start, end})
      if (!known(s, e) || !e->recorded || (e->flags & kEventDisableTiming)) return cudaErrorInvalidResourceHandle;
    *ms = std::chrono::duration<float, std::milli>(end->when - start->when).count();
    return cudaSuccess;
  });
}
