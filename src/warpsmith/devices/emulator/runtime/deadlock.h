// The report of a launch in which nothing can go on.
#pragma once
#include <string>
#include <vector>

#include "state.h"

namespace ws {

struct DeadlockReport {
  // All warps that wait for the same thing at the same instruction.
  struct Place {
    uint32_t site = kNone, barrier = kNone;
    bool spins = false;         // polls memory; else it waits for the barrier, or for other lanes if there is none
    uint64_t threads = 0, blocks = 0;
    // Of the first block that waits there:
    uint64_t number = ~0ull;
    uint32_t block[3] = {}, thread[3] = {}, lanes = 0;
    uint32_t arrived = 0, count = 0;  // threads of its block that came to the barrier, and that it waits for
    std::string missing;
    std::string mbarrier;       // the state of the one that it polls, if it does
    const Block* last_block = nullptr;
  };

  bool pending = false;         // there is a deadlock
  const Block* only = nullptr;  // this block alone is stuck; null: the whole launch
  std::vector<Place> places;
  uint64_t resident = 0, not_started = 0;

  void collect(const Worker& k);
  std::string text(const Launch& l) const;

 private:
  struct Wait { uint32_t site, barrier, lanes; bool spins; };
  void add(const Block& b, const Warp& w, const Wait& wait, const std::string& missing);
  Place& place_of(const Block& b, const Warp& w, const Wait& wait);
};

}  // namespace ws
