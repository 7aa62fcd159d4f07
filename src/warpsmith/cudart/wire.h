// Messages between a program and the compile service (devices/emulator/service.py): little-endian numbers,
// strings as a length and bytes.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace cudart {

enum class Ask : uint32_t {
  hello = 1,      // version, process id -> chip, options
  module = 2,     // fat binaries of one device program -> number, variables, functions, kernels
  kernel = 3,     // module number, kernel -> shared object, symbol
  registers = 4,  // module number, kernel -> registers a thread, as the real compiler allocates them (0: unknown)
  locate = 5,     // code addresses (file, offset) -> source position of the first that is the user's
  problem = 6,    // JSON; no answer
  summary = 7,    // JSON, replaces the last one; no answer
};
constexpr uint32_t kProtocol = 2;

class Writer {
 public:
  template <class T> Writer& put(T value) {
    static_assert(std::is_arithmetic<T>::value, "numbers only");
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& text(const char* data, size_t size) {
    put(static_cast<uint32_t>(size));
    bytes.append(data, size);
    return *this;
  }
  Writer& text(const std::string& s) { return text(s.data(), s.size()); }

  std::string bytes;
};

// Reading past the end gives zeros and makes ok() false: one check after the last read is enough.
class Reader {
 public:
  explicit Reader(std::string data = {}) : bytes_(std::move(data)) {}
  template <class T> T get() {
    T value{};
    if (bytes_.size() - at_ < sizeof value) ok_ = false;
    else std::memcpy(&value, bytes_.data() + at_, sizeof value), at_ += sizeof value;
    return value;
  }
  uint32_t u32() { return get<uint32_t>(); }
  uint64_t u64() { return get<uint64_t>(); }
  std::string text() {
    uint32_t n = u32();
    if (bytes_.size() - at_ < n) return ok_ = false, std::string();
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  bool ok() const { return ok_; }

 private:
  std::string bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace cudart
