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
    event->recorded = true;
    event->when = std::chrono::steady_clock::now();
    return cudaSuccess;
  });
}

// A callback must not call the API, and must be able to take locks that no call of ours holds.
template <class F> cudaError_t call_back(cudaStream_t stream, F f) {
  if (cudaError_t e = on_stream(stream, [](State&) { return cudaSuccess; })) return e;
  in_callback = true;
  f();
  in_callback = false;
  return cudaSuccess;
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
    if (!s.streams.erase(stream)) return cudaErrorInvalidResourceHandle;
    delete stream;
    return cudaSuccess;
  });
}

CUDA_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return waiting([&](State& s) { return known(s, stream) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}
CUDA_ALIAS(cudaStreamSynchronize_ptsz, cudaStreamSynchronize);

CUDA_API cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return waiting([&](State& s) { return known(s, stream) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}
CUDA_ALIAS(cudaStreamQuery_ptsz, cudaStreamQuery);

CUDA_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return on_stream(stream, [&](State& s) {
    if (!known(s, event)) return cudaErrorInvalidResourceHandle;
    return flags > 1 ? cudaErrorInvalidValue : cudaSuccess;
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

// Libraries ask whether a stream is being captured; without capture it never is.
CUDA_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return on_stream(stream, [&](State&) {
    if (!status) return cudaErrorInvalidValue;
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
  });
}
CUDA_ALIAS(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing);

CUDA_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long*, void*, void*,
                                              void*, size_t*) {
  return cudaStreamIsCapturing(stream, status);
}
CUDA_ALIAS(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo);

CUDA_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  if (!mode) return answer(cudaErrorInvalidValue);
  std::swap(*mode, current);
  return cudaSuccess;
}

// ---- host functions --------------------------------------------------------------------------------------
CUDA_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (!function) return answer(cudaErrorInvalidValue);
  return call_back(stream, [&] { function(data); });
}
CUDA_ALIAS(cudaLaunchHostFunc_ptsz, cudaLaunchHostFunc);

CUDA_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned flags) {
  if (!function || flags) return answer(cudaErrorInvalidValue);
  return call_back(stream, [&] { function(stream, cudaSuccess, data); });
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
  return on_device([&](State& s) { return known(s, event) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}

CUDA_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return waiting([&](State& s) { return known(s, event) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
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
