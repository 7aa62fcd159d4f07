// printf and assert of kernels.
#include <cstring>

#include "check.h"
#include "output.h"
#include "scheduler.h"

namespace ws {

namespace {

// Reads the arguments as nvcc packs them: each at the next multiple of its own size.
class Arguments {
 public:
  Arguments(Warp& w, uint32_t site, uint64_t at, uint32_t lane) : w_(w), site_(site), at_(at), lane_(lane) {}
  template <class T>
  T next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    uint64_t addr[WS_LANES];
    addr[lane_] = at_;
    check_access(w_, kNone, WS_GENERIC, WS_LOAD, sizeof(T), 1, addr, 1u << lane_);
    T v;
    std::memcpy(&v, host_address(w_, WS_GENERIC, at_, lane_), sizeof v);
    at_ += sizeof(T);
    ++count_;
    return v;
  }
  int count() const { return count_; }

 private:
  Warp& w_;
  uint32_t site_;
  uint64_t at_;
  uint32_t lane_;
  int count_ = 0;
};

// One conversion: "%-8.3lld".
struct Spec {
  char flags[8] = "";
  int width = -1, precision = -1;
  int length = 0;               // -2 hh, -1 h, 1 l, 2 ll (z, t, j and L count as ll)
  char type = 0;
};

const char* parse(const char* p, Spec* s, Arguments& args) {
  size_t n = 0;
  while (*p && std::strchr("-+ #0", *p)) {
    if (n < sizeof s->flags - 1 && !std::strchr(s->flags, *p)) s->flags[n++] = *p, s->flags[n] = 0;
    ++p;
  }
  auto number = [&](int* out) {
    if (*p == '*') {
      *out = args.next<int32_t>();
      ++p;
      return;
    }
    if (*p < '0' || *p > '9') return;
    *out = 0;
    for (; *p >= '0' && *p <= '9'; ++p) *out = *out < 100000 ? *out * 10 + (*p - '0') : *out;
  };
  number(&s->width);
  if (s->width < -1) {          // a negative '*' means left-justified
    s->width = -s->width;
    if (n < sizeof s->flags - 1 && !std::strchr(s->flags, '-')) s->flags[n++] = '-', s->flags[n] = 0;
  }
  if (*p == '.') {
    ++p;
    s->precision = 0;
    number(&s->precision);
  }
  for (; *p && std::strchr("hlLqjzt", *p); ++p) s->length += *p == 'h' ? -1 : *p == 'l' ? 1 : 2;
  s->type = *p;
  return *p ? p + 1 : p;
}

std::string pattern_of(const Spec& s, const char* length, char type) {
  std::string out = std::string("%") + s.flags;
  if (s.width >= 0) out += std::to_string(s.width);
  if (s.precision >= 0) out += "." + std::to_string(s.precision);
  return out + length + type;
}

void convert(std::string& out, const Spec& s, Arguments& args, Warp& w, uint32_t lane) {
  const bool wide = s.length >= 1;
  switch (s.type) {
    case 'd': case 'i': {
      long long v = wide ? args.next<int64_t>() : args.next<int32_t>();
      if (s.length == -1) v = short(v);
      if (s.length <= -2) v = static_cast<signed char>(v);
      out += format(pattern_of(s, "ll", s.type).c_str(), v);
      break;
    }
    case 'u': case 'o': case 'x': case 'X': {
      unsigned long long v = wide ? args.next<uint64_t>() : args.next<uint32_t>();
      if (s.length == -1) v = static_cast<unsigned short>(v);
      if (s.length <= -2) v = static_cast<unsigned char>(v);
      out += format(pattern_of(s, "ll", s.type).c_str(), v);
      break;
    }
    case 'c':
      out += format(pattern_of(s, "", 'c').c_str(), args.next<int32_t>());
      break;
    case 'p':
      out += format(pattern_of(s, "", 'p').c_str(), reinterpret_cast<void*>(args.next<uint64_t>()));
      break;
    case 's':
      out += format(pattern_of(s, "", 's').c_str(), read_string(w, args.next<uint64_t>(), lane).c_str());
      break;
    default:
      out += format(pattern_of(s, "", s.type).c_str(), args.next<double>());
  }
}

// The text of one call by one lane; returns the number of arguments.
int formatted(std::string& out, Warp& w, uint32_t site, uint64_t pattern, uint64_t arguments, uint32_t lane) {
  const std::string text = read_string(w, pattern, lane);
  Arguments args(w, site, arguments, lane);
  for (const char* p = text.c_str(); *p;) {
    const char* percent = std::strchr(p, '%');
    if (!percent) {
      out += p;
      break;
    }
    out.append(p, size_t(percent - p));
    if (percent[1] == '%') {
      out += '%';
      p = percent + 2;
      continue;
    }
    Spec s;
    p = parse(percent + 1, &s, args);
    // What is no conversion is printed as it is.
    if (s.type && std::strchr("diuoxXcspfFeEgGaA", s.type)) convert(out, s, args, w, lane);
    else out.append(percent, size_t(p - percent));
  }
  return args.count();
}

}  // namespace

}  // namespace ws

using namespace ws;

void ws_vprintf(ws_warp* warp, uint32_t site, const uint64_t* pattern, const uint64_t* args, int32_t* result, uint32_t mask) {
  Warp& w = warp_of(warp);
  std::string out;
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(m));
    const int n = pattern[lane] ? formatted(out, w, site, pattern[lane], args[lane], lane) : -1;
    if (result) result[lane] = n;
  }
  print(*block_of(warp).worker, out);
}

void ws_assertfail(ws_warp* warp, uint32_t site, const uint64_t* message, const uint64_t* file, const uint32_t* line,
                   const uint64_t* function, uint32_t mask) {
  if (!mask) return;
  Warp& w = warp_of(warp);
  const uint32_t lane = uint32_t(__builtin_ctz(mask));
  fail(w, Failure{WS_E_ASSERT, site, mask, "assertion failed: " + read_string(w, message[lane], lane) + format(" (%s:%u, %s)",
                  read_string(w, file[lane], lane).c_str(), line[lane], read_string(w, function[lane], lane).c_str())});
}
