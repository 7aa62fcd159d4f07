// Asynchronous copies: what has been asked for and not happened yet.
//
// A copy takes effect as late as the program allows: when a wait of its thread covers it, or when somebody waits for
// the mbarrier that it reports to.  Until then its destination has the old contents, and its source is not read either.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "abi.h"

namespace ws {

struct Warp;

// One cp.async or cp.async.mbarrier.arrive of a warp, for the lanes for which it has not taken effect.
struct Flight {
  enum Kind : uint8_t { copy, arrive };
  uint32_t site, lanes;
  uint32_t group;               // groups that its lanes had committed before: equal for all of them
  Kind kind;
  uint8_t bytes;                // of a copy
  uint8_t valid[WS_LANES];      // bytes to read; what is left is filled with zeros
  uint32_t to[WS_LANES];        // offset in shared memory: the destination, or the mbarrier
  const uint8_t* from[WS_LANES];
};

// One cp.async.bulk of a thread.
struct Bulk {
  enum Kind : uint8_t { load, store };
  uint32_t site, lane, group;
  Kind kind;
  bool taken;                   // a store has read its source
  uint32_t shared, bytes;       // offset in shared memory
  uint32_t barrier;             // mbarrier to report to
  uint8_t* global;
  std::vector<uint8_t> data;    // what a store has read
};

// Of a warp.
struct Traffic {
  std::vector<Flight> ring;     // its size is a power of two
  uint32_t head = 0, count = 0;
  // Groups committed, by lane; `common` stands for all lanes while `even`.
  bool even = true;
  uint32_t common = 0, own[WS_LANES], bulk_groups[WS_LANES];
  std::vector<Bulk> bulks;      // in order

  Flight& at(uint32_t i) { return ring[(head + i) & uint32_t(ring.size() - 1)]; }
  uint32_t committed(uint32_t lane) const { return even ? common : own[lane]; }
  Flight& add();
  void drop_finished();
  void commit(uint32_t lanes, uint32_t live);
};

// Of a block, in check mode: a byte for each 4 bytes of shared memory.
enum Mark : uint8_t { kFree, kDestination, kSource };
struct Marks {
  std::vector<uint8_t> mark;
  uint32_t flights = 0;         // records that have marks
};

}  // namespace ws

struct ws_block;
namespace ws {
// The block begins or has ended: forget what is still under way (bulk stores happen).
void reset_traffic(ws_block& b);
void finish_traffic(ws_block& b);
// Somebody waits for this mbarrier: what reports to it happens.
void force(ws_block& b, uint32_t barrier);
// Ends the launch if lanes of mask touch what a copy is still writing, or write what it is still reading.
void check_flights(Warp& w, uint32_t site, uint32_t kind, uint32_t bytes, const uint32_t* offset, uint32_t mask);
// The same for addresses of a space, of which only those in shared memory matter.
void check_flights(Warp& w, uint32_t site, uint32_t space, uint32_t kind, uint32_t bytes, const uint64_t* addr, uint32_t mask);
// mbarrier.cpp: n arrivals, or bytes, of an asynchronous operation.
void arrive_at(Warp& w, uint32_t site, uint32_t barrier, uint32_t lanes, uint32_t n);
void complete_bytes(Warp& w, uint32_t site, uint32_t barrier, uint32_t lanes, uint32_t bytes);
// What it waits for, in words.
std::string describe_mbarrier(const Warp& w, uint32_t at);
}  // namespace ws
