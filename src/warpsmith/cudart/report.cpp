// What people and the parent process learn: the output of kernels, problems, the summary.
#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <map>
#include <unistd.h>

#include "runtime.h"

namespace cudart {
namespace {

using Clock = std::chrono::steady_clock;

// As on a GPU, what kernels print comes out where the host waits for the device.  Without that a person
// would see another order than on hardware; but much text or a long launch is not held back.
class Output {
 public:
  void append(const char* bytes, uint64_t size) {
    std::lock_guard<std::mutex> lock(mutex_);
    text_.append(bytes, size);
    if (text_.size() > kMost || Clock::now() - began_ > std::chrono::seconds(1)) write();
  }
  bool flush() {
    std::lock_guard<std::mutex> lock(mutex_);
    bool some = !text_.empty();
    write();
    return some;
  }
  void starts() {
    std::lock_guard<std::mutex> lock(mutex_);
    began_ = Clock::now();
  }

 private:
  static constexpr size_t kMost = 1 << 20;
  void write() {
    if (text_.empty()) return;
    fwrite(text_.data(), 1, text_.size(), stdout);
    if (text_.size() > kMost || Clock::now() - began_ > std::chrono::seconds(1)) fflush(stdout);
    text_.clear();
  }
  std::mutex mutex_;
  std::string text_;
  Clock::time_point began_ = Clock::now();
};

Output& output() {
  static Output* o = new Output;  // lives as long as anything may print
  return *o;
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (unsigned char c : s) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (c < 0x20) out += format("\\u%04x", c);
    else out += c;
  }
  return out + '"';
}

// Builds one JSON object.
class Json {
 public:
  Json& text(const char* key, const std::string& value) { return raw(key, quoted(value)); }
  Json& number(const char* key, uint64_t value) { return raw(key, std::to_string(value)); }
  Json& triple(const char* key, const uint32_t v[3]) { return raw(key, format("[%u,%u,%u]", v[0], v[1], v[2])); }
  Json& raw(const char* key, const std::string& value) {
    body_ += (body_.empty() ? "" : ",") + quoted(key) + ":" + value;
    return *this;
  }
  std::string done() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

const char* kind_of(uint32_t code) {
  static const char* const names[] = {"none", "trap", "assert", "out-of-bounds", "misaligned", "null", "deadlock", "barrier", "stack",
                                      "call", "unsupported", "interrupt", "launch", "memory", "segv", "read-only", "sync"};
  return code < sizeof names / sizeof *names ? names[code] : "other";
}

void print(const std::string& message) {
  // Our message must not come before what the program itself printed earlier.
  fflush(stdout);
  fprintf(stderr, "warpsmith: %s\n", message.c_str());
}

}  // namespace

std::string format(const char* pattern, ...) {
  va_list args, again;
  va_start(args, pattern);
  va_copy(again, args);
  std::string text(vsnprintf(nullptr, 0, pattern, args), '\0');
  vsnprintf(&text[0], text.size() + 1, pattern, again);
  va_end(args);
  va_end(again);
  return text;
}

// Without its parameters and return type: "void sum<int>(int*)" -> "sum<int>".
static std::string bare(const std::string& whole) {
  size_t end = whole.rfind(')'), depth = 0;
  if (end == std::string::npos) return whole;
  for (; ; --end) {
    if (whole[end] == ')') ++depth;
    if (whole[end] == '(' && --depth == 0) break;
    if (end == 0) return whole;
  }
  size_t start = 0;
  depth = 0;
  for (size_t i = 0; i < end; ++i) {  // the last space outside of all brackets
    if (whole[i] == '<' || whole[i] == '(') ++depth;
    if (whole[i] == '>' || whole[i] == ')') --depth;
    if (whole[i] == ' ' && depth == 0) start = i + 1;
  }
  return whole.substr(start, end - start);
}

std::string readable(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && (isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_' || text[end] == '$')) ++end;
    if (end == at) {
      out += text[at++];
      continue;
    }
    std::string word = text.substr(at, end - at);
    char* name = word.compare(0, 2, "_Z") ? nullptr : abi::__cxa_demangle(word.c_str(), nullptr, nullptr, nullptr);
    out += name ? bare(name) : word;
    free(name);
    at = end;
  }
  return out;
}

void capture_output() {
  ws_set_output([](const char* bytes, uint64_t size) { output().append(bytes, size); });
}
bool flush_output() { return output().flush(); }
void output_starts() { output().starts(); }

void complain(const char* kind, const std::string& message) {
  // A program may make the same mistake in a loop.
  static std::map<std::string, unsigned>* seen = new std::map<std::string, unsigned>;
  static std::mutex guard;
  std::lock_guard<std::mutex> lock(guard);
  unsigned before = (*seen)[message]++;
  if (before == 0) {
    print(message);
    state().service.tell(Ask::problem, Json().text("kind", kind).text("message", message).done());
  }
}

void report_fault(State& s, const Kernel& k, const ws_launch_config& c, const ws_error& e) {
  flush_output();
  std::string message = readable(e.message);
  if (e.near_size) {
    std::string where = where_allocated(s, e.near_base);
    if (!where.empty()) message += "\n  the memory was allocated" + where;
  }
  print(message);
  Json j;
  j.text("kind", kind_of(e.code)).text("message", message).text("kernel", k.pretty);
  j.triple("grid", c.grid).triple("block_size", c.block);
  if (e.site < k.info->site_count) {
    const ws_site& site = k.info->sites[e.site];
    if (site.file) j.text("file", site.file);
    if (site.line) j.number("line", site.line);
    j.number("ptx_line", site.ptx_line);
    if (site.text) j.text("instruction", site.text);
    if (site.function) j.text("function", readable(site.function));
    j.triple("block", e.block).triple("thread", e.thread).number("lanes", e.lanes);
  }
  if (e.bytes) j.number("address", e.address).number("bytes", e.bytes).number("space", e.space).number("access", e.kind);
  if (e.near_size) j.number("near_base", e.near_base).number("near_size", e.near_size);
  s.service.tell(Ask::problem, j.done());
}

void update_summary(State& s, bool now) {
  // Sent again and again, so that little is lost when the program ends without saying so.
  static Clock::time_point last;
  static unsigned sent = 0;
  if (!now && ++sent > 20 && Clock::now() - last < std::chrono::milliseconds(100)) return;
  last = Clock::now();
  std::string kernels;
  for (const auto& k : s.kernels) {
    if (!k->launches) continue;
    Json j;
    j.text("name", k->pretty).number("launches", k->launches).number("blocks", k->blocks).number("threads", k->threads);
    j.number("instructions", k->instructions).number("nanoseconds", k->nanoseconds);
    kernels += (kernels.empty() ? "" : ",") + j.done();
  }
  uint64_t in_use = 0, count = 0, peak = 0;
  ws_memory(&in_use, &count, &peak);
  Json j;
  j.raw("kernels", "[" + kernels + "]").number("memory_peak", peak);
  s.service.tell(Ask::summary, j.done());
}

namespace {

// Runs when the program ends normally, after its own handlers.
__attribute__((destructor)) void at_end() {
  State& s = state();
  if (!s.ready || s.owner != getpid()) return;
  if (flush_output())
    complain("note", "the program ended without waiting for its kernels: on a GPU, what they printed last would be lost"
                     " (cudaDeviceSynchronize waits)");
  fflush(stdout);
  Lock lock(s.mutex, std::try_to_lock);
  if (!lock) return;
  report_leaks(s);
  update_summary(s, true);
}

}  // namespace
}  // namespace cudart
