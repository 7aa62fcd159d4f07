#include "output.h"

#include <cstdio>
#include <mutex>

#include "scheduler.h"

namespace ws {

namespace {

constexpr size_t kFull = 65536;
constexpr uint64_t kLate = 50'000'000;  // ns after which waiting output is handed on

std::mutex g_mutex;                     // guards the gathered text
std::mutex g_writing;                   // keeps the order of what is handed on
std::string g_text;
uint64_t g_flushed = 0;
void (*g_write)(const char*, uint64_t) = nullptr;

}  // namespace

void print(Worker& k, const std::string& text) {
  bool flush;
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    g_text += text;
    flush = g_text.size() >= kFull || now_ns() - g_flushed > kLate;
  }
  if (flush) k.on_main([](void*) { flush_output(); }, nullptr);
}

void flush_output() {
  std::lock_guard<std::mutex> order(g_writing);
  std::string text;
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    text.swap(g_text);
    g_flushed = now_ns();
  }
  if (text.empty()) return;
  if (g_write) {
    g_write(text.data(), text.size());
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}

}  // namespace ws

void ws_set_output(void (*write)(const char*, uint64_t)) {
  ws::flush_output();
  ws::g_write = write;
}
