#include "pool.h"

#include <pthread.h>
#include <sched.h>

#include <condition_variable>
#include <thread>

#include "faults.h"
#include "output.h"
#include "scheduler.h"

namespace ws {

namespace {

struct Pool {
  std::mutex mutex;
  std::condition_variable work, done;
  std::vector<Worker*> workers;   // [0] is whoever launches
  uint32_t threads = 0;           // started, for workers 1...
  Launch* launch = nullptr;       // open for helpers to join
  uint64_t generation = 0;
  uint32_t inside = 0;            // helpers that run it now
};

Pool* g_pool = nullptr;

void forget_threads() { g_pool = nullptr; }  // a forked child has none of them

Pool& pool() {
  if (!g_pool) {
    static const int registered = pthread_atfork(nullptr, nullptr, forget_threads);
    (void)registered;
    g_pool = new Pool;
  }
  return *g_pool;
}

void take_part(Launch& l, Worker& k, uint32_t number) {
  {
    std::lock_guard<std::mutex> lock(l.mutex);
    k.begin(l, number);
    l.joined.push_back(&k);
  }
  k.run();
}

void help(Pool& p, uint32_t number) {
  prepare_thread();
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(p.mutex);
  for (;;) {
    p.work.wait(lock, [&] { return p.launch && p.generation != seen && number < p.launch->worker_count; });
    seen = p.generation;
    Launch& l = *p.launch;
    Worker& k = *p.workers[number];
    ++p.inside;
    lock.unlock();
    take_part(l, k, number);
    lock.lock();
    if (--p.inside == 0) p.done.notify_all();
  }
}

}  // namespace

uint32_t available_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return uint32_t(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

void run_on_workers(Launch& l) {
  Pool& p = pool();
  prepare_thread();
  {
    std::lock_guard<std::mutex> lock(p.mutex);
    while (p.workers.size() < l.worker_count) p.workers.push_back(new Worker);
    while (p.threads + 1 < l.worker_count) {
      const uint32_t number = ++p.threads;
      std::thread([&p, number] { help(p, number); }).detach();
    }
    p.launch = l.worker_count > 1 ? &l : nullptr;
    ++p.generation;
  }
  if (l.worker_count > 1) p.work.notify_all();
  take_part(l, *p.workers[0], 0);
  {
    std::unique_lock<std::mutex> lock(p.mutex);
    p.launch = nullptr;
    p.done.wait(lock, [&] { return p.inside == 0; });
  }
}

}  // namespace ws
